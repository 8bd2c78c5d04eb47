/** OpenAI's answer as server-sent events. */

import type { Events } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { SandboxChatRequest } from './chat-request.ts';
import { answerId, callId, finishReason } from './identity.ts';
import { chatLogprobs } from './logprobs.ts';
import type { OpenAiModel } from './models.ts';
import { thoughtsOf } from './reasoning.ts';
import { usageOf } from './usage.ts';

/** OpenAI pads chunks with this many random characters at most, so that their size does not reveal the word. */
const PADDING = 'hG7uQ2vXk9TzLw4R';
const DONE = 'data: [DONE]\n\n';
const ERROR = { message: 'The server had an error while processing your request.', type: 'server_error' };

export function eventsOf(
  answer: SandboxModelOutput<OpenAiModel>,
  { includeUsage, obfuscate, thoughts, logprobs }: SandboxChatRequest,
  fault: Fault | undefined,
): Events {
  const { created, model, n, pieces, tool } = answer;
  const withUsage = includeUsage && fault !== 'no_usage';
  const head =
    `data: {"id":"${answerId(answer)}","object":"chat.completion.chunk","created":${created},` +
    `"model":"${model.snapshot}","service_tier":"default",` +
    `"system_fingerprint":${JSON.stringify(model.fingerprint)},"choices":[`;
  const chunk = (choices: string, padding = 0, usage = 'null') =>
    head +
    choices +
    (withUsage ? `],"usage":${usage}` : ']') +
    (obfuscate ? `,"obfuscation":"${PADDING.slice(padding % PADDING.length)}"}\n\n` : '}\n\n');
  const choice = (index: number, delta: string, reason = 'null', probable = 'null') =>
    `{"index":${index},"delta":${delta},"logprobs":${probable},"finish_reason":${reason}}`;
  const probable = (json: string) =>
    logprobs === undefined ? 'null' : JSON.stringify(chatLogprobs(answer, JSON.parse(json), logprobs));
  const delta = (json: string, call: number) =>
    tool === undefined ? `{"content":${json}}` : `{"tool_calls":[{"index":${call},"function":{"arguments":${json}}}]}`;

  const indexes = Array.from({ length: n }, (_, index) => index);
  const reasoning = thoughtsOf(answer, thoughts);
  const thinking = Object.keys(reasoning).length === 0 ? [] : [JSON.stringify(reasoning)];
  const opening = indexes
    .flatMap((index) => [firstDelta(answer, index), ...thinking].map((each) => chunk(choice(index, each))))
    .join('');
  const framesOf = (call: number) =>
    pieces.flatMap(({ json, tokens }, at) =>
      indexes.map((index) => {
        const begins = call > 0 && at === 0;
        const beginning = begins
          ? chunk(choice(index, JSON.stringify({ tool_calls: [begun(answer, index, call)] })))
          : '';
        const event = beginning + chunk(choice(index, delta(json, call), 'null', probable(json)), json.length);
        return { event, tokens };
      }),
    );
  const calls = Array.from({ length: answer.calls }, (_, call) => call);
  return {
    opening,
    content: calls.length > 1 ? calls.flatMap(framesOf) : framesOf(0),
    closing:
      indexes.map((index) => chunk(choice(index, '{}', `"${finishReason(answer)}"`))).join('') +
      (withUsage ? chunk('', 0, JSON.stringify(usageOf(answer, fault))) : '') +
      DONE,
    broken: `${opening.slice(0, opening.indexOf('"choices"'))}\n\n`,
    error: `data: ${JSON.stringify({ error: { ...ERROR, param: null, code: null } })}\n\n`,
  };
}

function firstDelta(answer: SandboxModelOutput, choice: number): string {
  if (answer.tool === undefined) return '{"role":"assistant","content":"","refusal":null}';
  return JSON.stringify({ role: 'assistant', content: null, tool_calls: [begun(answer, choice, 0)], refusal: null });
}

/** A call without its arguments; those of the first one come with the first delta. */
function begun(answer: SandboxModelOutput, choice: number, call: number) {
  const { tool: name } = answer;
  return { index: call, id: callId(answer, choice, call), type: 'function', function: { name, arguments: '' } };
}
