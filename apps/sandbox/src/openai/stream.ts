/** Creates OpenAI's chat completion as server-sent events. */

import type { StreamParts } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { SandboxChatRequest } from './chat-request.ts';
import { toChatCitations, toCustomCall, toFunctionCall } from './completion.ts';
import { createGroqFields, getCallId, getCompletionId, getFinishReason, ROUTED_PROVIDER } from './identity.ts';
import { toChatLogprobs } from './logprobs.ts';
import type { OpenAiModel } from './models.ts';
import { toReasoningFields } from './reasoning.ts';
import type { ResponseFields } from './response-fields.ts';
import { toUsage } from './usage.ts';

/** The end of this text pads each chunk. OpenAI's padding is random, so that the size does not reveal the word. */
const PADDING = 'hG7uQ2vXk9TzLw4R';
const DONE = 'data: [DONE]\n\n';
const ERROR = { message: 'The server had an error while processing your request.', type: 'server_error' };
/** Why Groq stopped a stream early. */
const GROQ_ERROR = 'over_capacity';
/** https://openrouter.ai/docs/api-reference/errors */
const ROUTER_ERROR = { code: 502, message: 'Provider disconnected' };

export function toEvents(
  output: SandboxModelOutput<OpenAiModel>,
  { includeUsage, obfuscate, fields, serviceTier, logprobs }: SandboxChatRequest,
  fault: Fault | undefined,
): StreamParts {
  const { created, model, n, chunks, tool, takesText } = output;
  const { lacks, added } = fields;
  const withUsage = includeUsage && fault !== 'no_usage';
  const tier = output.reportedBill.serviceTier ?? serviceTier;
  const head =
    `data: {"id":"${getCompletionId(output)}",${added === 'provider' ? `"provider":"${ROUTED_PROVIDER}",` : ''}` +
    `"object":"chat.completion.chunk","created":${created},"model":"${model.snapshot}",` +
    (lacks.has('service_tier of chunks') ? '' : `"service_tier":${JSON.stringify(tier)},`) +
    (model.fingerprint === null ? '' : `"system_fingerprint":"${model.fingerprint}",`) +
    '"choices":[';
  const nullUsage = withUsage && !lacks.has('null usage') ? ',"usage":null' : '';
  const formatChunk = (choices: string, padding = 0, otherFields = nullUsage) =>
    `${head}${choices}]${otherFields}` +
    (obfuscate ? `,"obfuscation":"${PADDING.slice(padding % PADDING.length)}"}\n\n` : '}\n\n');
  const formatChoice = (index: number, delta: string, reason = 'null', probable = 'null') =>
    `{"index":${index},"delta":${delta},"logprobs":${probable},"finish_reason":${reason}}`;
  const formatLogprobs = (json: string) =>
    logprobs === undefined ? 'null' : JSON.stringify(toChatLogprobs(output, JSON.parse(json), logprobs));
  const textField = fault === 'refusal' && !lacks.has('refusal') ? 'refusal' : 'content';
  const formatDelta = (json: string, call: number) =>
    tool === undefined
      ? `{"${textField}":${json}}`
      : `{"tool_calls":[{"index":${call},${takesText ? `"custom":{"input":${json}}` : `"function":{"arguments":${json}}`}}]}`;

  const formatGroqFields = (groqFields: object) =>
    added === 'x_groq' ? `,"x_groq":${JSON.stringify({ ...createGroqFields(output), ...groqFields })}` : '';
  const formatEnd = (index: number, reason: string, otherFields: string) =>
    formatChunk(formatChoice(index, '{}', `"${reason}"`), 0, nullUsage + otherFields);
  const usage = toUsage(output, fault, fields);
  const groqUsage = fault === 'no_usage' ? {} : { usage };
  const formatError = () => {
    if (added === 'x_groq') return formatEnd(0, 'stop', formatGroqFields({ error: GROQ_ERROR })) + DONE;
    if (added === 'provider') return formatEnd(0, 'error', `,"error":${JSON.stringify(ROUTER_ERROR)}`) + DONE;
    return `data: ${JSON.stringify({ error: { ...ERROR, param: null, code: null } })}\n\n`;
  };

  const indexes = Array.from({ length: n }, (_, index) => index);
  const reasoning = toReasoningFields(output, fields.reasoning);
  const thinking = Object.keys(reasoning).length === 0 ? [] : [JSON.stringify(reasoning)];
  const opening = indexes
    .flatMap((index) =>
      [createFirstDelta(output, index, lacks), ...thinking].map((deltaJson, at) =>
        formatChunk(formatChoice(index, deltaJson), 0, nullUsage + (at === 0 ? formatGroqFields({}) : '')),
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
  const annotations = toChatCitations(output);
  const sources = annotations.length > 0 ? formatChunk(formatChoice(0, JSON.stringify({ annotations }))) : '';
  const calls = Array.from({ length: output.calls }, (_, call) => call);
  return {
    opening,
    content: calls.length > 1 ? calls.flatMap(createFrames) : createFrames(0),
    closing:
      sources +
      indexes.map((index) => formatEnd(index, getFinishReason(output), formatGroqFields(groqUsage))).join('') +
      (withUsage ? formatChunk('', 0, `,"usage":${JSON.stringify(usage)}`) : '') +
      DONE,
    malformed: `${opening.slice(0, opening.indexOf('"choices"'))}\n\n`,
    error: formatError(),
  };
}

function createFirstDelta(output: SandboxModelOutput, choice: number, lacks: ResponseFields['lacks']): string {
  const refusal = lacks.has('refusal') ? {} : { refusal: null };
  if (output.tool === undefined) return JSON.stringify({ role: 'assistant', content: '', ...refusal });
  const tool_calls = [createCallStart(output, choice, 0)];
  return JSON.stringify({ role: 'assistant', content: null, tool_calls, ...refusal });
}

/** Returns a tool call without its arguments, which follow in later deltas. */
function createCallStart(output: SandboxModelOutput, choice: number, call: number) {
  const { tool = '', takesText } = output;
  const called = takesText ? toCustomCall(tool, '') : toFunctionCall(tool, '');
  return { index: call, id: getCallId(output, choice, call), ...called };
}
