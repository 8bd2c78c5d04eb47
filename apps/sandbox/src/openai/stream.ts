/** Creates OpenAI's chat completion as server-sent events. */

import type { StreamParts } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { SandboxChatRequest } from './chat-request.ts';
import { createGroqFields, getCallId, getCompletionId, getFinishReason, ROUTED_PROVIDER } from './identity.ts';
import { toChatLogprobs } from './logprobs.ts';
import type { OpenAiModel } from './models.ts';
import { toReasoningFields } from './reasoning.ts';
import { toUsage } from './usage.ts';

/** The end of this text pads each chunk. OpenAI's padding is random, so that the size does not reveal the word. */
const PADDING = 'hG7uQ2vXk9TzLw4R';
const DONE = 'data: [DONE]\n\n';
const ERROR = { message: 'The server had an error while processing your request.', type: 'server_error' };
/** Why Groq stopped a stream early. */
const GROQ_ERROR = 'over_capacity';

export function toEvents(
  output: SandboxModelOutput<OpenAiModel>,
  { includeUsage, obfuscate, reasoningField, responseFields, costField, serviceTier, logprobs }: SandboxChatRequest,
  fault: Fault | undefined,
): StreamParts {
  const { created, model, n, chunks, tool } = output;
  const withUsage = includeUsage && fault !== 'no_usage';
  const head =
    `data: {"id":"${getCompletionId(output)}",${responseFields === 'provider' ? `"provider":"${ROUTED_PROVIDER}",` : ''}` +
    `"object":"chat.completion.chunk","created":${created},` +
    `"model":"${model.snapshot}","service_tier":${JSON.stringify(output.reportedBill.serviceTier ?? serviceTier)},` +
    `"system_fingerprint":${JSON.stringify(model.fingerprint)},"choices":[`;
  const formatChunk = (choices: string, padding = 0, usage = 'null', fields = '') =>
    head +
    choices +
    (withUsage ? `],"usage":${usage}` : ']') +
    fields +
    (obfuscate ? `,"obfuscation":"${PADDING.slice(padding % PADDING.length)}"}\n\n` : '}\n\n');
  const formatChoice = (index: number, delta: string, reason = 'null', probable = 'null') =>
    `{"index":${index},"delta":${delta},"logprobs":${probable},"finish_reason":${reason}}`;
  const formatLogprobs = (json: string) =>
    logprobs === undefined ? 'null' : JSON.stringify(toChatLogprobs(output, JSON.parse(json), logprobs));
  const textField = fault === 'refusal' ? 'refusal' : 'content';
  const formatDelta = (json: string, call: number) =>
    tool === undefined
      ? `{"${textField}":${json}}`
      : `{"tool_calls":[{"index":${call},"function":{"arguments":${json}}}]}`;

  const formatGroqFields = (fields: object) =>
    responseFields === 'x_groq' ? `,"x_groq":${JSON.stringify({ ...createGroqFields(output), ...fields })}` : '';
  const formatEnd = (index: number, reason: string, fields: object) =>
    formatChunk(formatChoice(index, '{}', `"${reason}"`), 0, 'null', formatGroqFields(fields));

  const indexes = Array.from({ length: n }, (_, index) => index);
  const reasoning = toReasoningFields(output, reasoningField);
  const thinking = Object.keys(reasoning).length === 0 ? [] : [JSON.stringify(reasoning)];
  const opening = indexes
    .flatMap((index) =>
      [createFirstDelta(output, index), ...thinking].map((deltaJson, at) =>
        formatChunk(formatChoice(index, deltaJson), 0, 'null', at === 0 ? formatGroqFields({}) : ''),
      ),
    )
    .join('');
  const createFrames = (call: number) =>
    chunks.flatMap(({ json, tokens }, at) =>
      indexes.map((index) => {
        const begins = call > 0 && at === 0;
        const callStart = begins
          ? formatChunk(formatChoice(index, JSON.stringify({ tool_calls: [createCallStart(output, index, call)] })))
          : '';
        const event =
          callStart +
          formatChunk(formatChoice(index, formatDelta(json, call), 'null', formatLogprobs(json)), json.length);
        return { event, tokens };
      }),
    );
  const calls = Array.from({ length: output.calls }, (_, call) => call);
  return {
    opening,
    content: calls.length > 1 ? calls.flatMap(createFrames) : createFrames(0),
    closing:
      indexes
        .map((index) =>
          formatEnd(index, getFinishReason(output), fault === 'no_usage' ? {} : { usage: toUsage(output, fault) }),
        )
        .join('') +
      (withUsage ? formatChunk('', 0, JSON.stringify(toUsage(output, fault, costField))) : '') +
      DONE,
    malformed: `${opening.slice(0, opening.indexOf('"choices"'))}\n\n`,
    error:
      responseFields === 'x_groq'
        ? formatEnd(0, 'stop', { error: GROQ_ERROR }) + DONE
        : `data: ${JSON.stringify({ error: { ...ERROR, param: null, code: null } })}\n\n`,
  };
}

function createFirstDelta(output: SandboxModelOutput, choice: number): string {
  if (output.tool === undefined) return '{"role":"assistant","content":"","refusal":null}';
  return JSON.stringify({
    role: 'assistant',
    content: null,
    tool_calls: [createCallStart(output, choice, 0)],
    refusal: null,
  });
}

/** Returns a tool call without its arguments, which follow in later deltas. */
function createCallStart(output: SandboxModelOutput, choice: number, call: number) {
  const { tool: name } = output;
  return { index: call, id: getCallId(output, choice, call), type: 'function', function: { name, arguments: '' } };
}
