/** Creates the response of a chat model, non-streaming or as server-sent events. */
import type { StreamParts } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import { generateProse } from '../provider/tokens.ts';
import { createSignature } from './chat-contents.ts';
import type { ChatModel } from './chat-models.ts';
import type { GeminiChatRequest } from './chat-request.ts';
import { countToolTokens, createGroundingField } from './grounding.ts';

type Output = SandboxModelOutput<ChatModel>;

const ERROR = {
  error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' },
};

export function getChatId({ serial }: Output): string {
  return serial;
}

export function createChatResponse(output: Output, request: GeminiChatRequest, fault: Fault | undefined) {
  const end = toUsageFields(output, fault);
  if (isBlocked(fault)) return { ...toBlockedPrompt(output), ...end };
  const parts = [...createThoughts(output, request), ...createOutputParts(output)];
  return toEvent(output, { content: { parts, role: 'model' }, ...createFinish(output, fault) }, end);
}

export function toChatEvents(output: Output, request: GeminiChatRequest, fault: Fault | undefined): StreamParts {
  const { chunks, tool } = output;
  const end = toUsageFields(output, fault);
  const toContent = (parts: readonly object[]) => ({ content: { parts, role: 'model' } });
  const preliminary =
    fault === 'no_usage' ? {} : { usageMetadata: { promptTokenCount: output.input, totalTokenCount: output.input } };
  const thoughts = createThoughts(output, request);
  const faults = { malformed: 'data: {"candidates": [{"content"\r\n\r\n', error: formatEvent(ERROR) };
  if (isBlocked(fault))
    return { opening: formatEvent({ ...toBlockedPrompt(output), ...end }), content: [], closing: '', ...faults };
  const toFrame = (parts: readonly object[], tokens: number) => ({
    event: formatEvent(toEvent(output, toContent(parts), preliminary)),
    tokens,
  });
  const callTokens = chunks.reduce((total, chunk) => total + chunk.tokens, 0);
  return {
    opening: thoughts.length > 0 ? toFrame(thoughts, 0).event : '',
    content:
      tool === undefined
        ? chunks.map(({ json, tokens }) => toFrame([{ text: JSON.parse(json) }], tokens))
        : createOutputParts(output).map((part) => toFrame([part], callTokens)),
    closing: formatEvent(toEvent(output, { ...toContent([{ text: '' }]), ...createFinish(output, fault) }, end)),
    ...faults,
  };
}

/** The model and the id are in every event. */
function toEvent({ serial, model }: Output, candidate: object, usage: object) {
  return { candidates: [{ ...candidate, index: 0 }], ...usage, modelVersion: model.snapshot, responseId: serial };
}

function isBlocked(fault: Fault | undefined): boolean {
  return fault === 'policy' || fault === 'policy_billed';
}

function toBlockedPrompt({ serial, model }: Output) {
  return { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, modelVersion: model.snapshot, responseId: serial };
}

function createThoughts({ reasoning }: Output, { includesThoughts }: GeminiChatRequest): readonly object[] {
  return includesThoughts && reasoning > 0 ? [{ text: generateProse(reasoning), thought: true }] : [];
}

/** A call that reached the token limit is left out: truncated arguments are not JSON. Of parallel calls, the first is signed. */
function createOutputParts({ serial, model, text, tool, calls, finish, visible }: Output): readonly object[] {
  if (tool === undefined) return visible > 0 ? [{ text }] : [];
  if (finish === 'length') return [];
  return Array.from({ length: calls }, (_, call) => ({
    functionCall: { id: `${serial}${call}`, name: tool, args: JSON.parse(text) },
    ...(call === 0 ? { thoughtSignature: createSignature(model) } : {}),
  }));
}

/** The metadata of searches comes with the finish reason. */
function createFinish(output: Output, fault: Fault | undefined) {
  const grounding = createGroundingField(output);
  if (fault === 'refusal')
    return {
      finishReason: 'SAFETY',
      finishMessage: 'The response was stopped, as the sandbox was instructed.',
      ...grounding,
    };
  return { finishReason: output.finish === 'length' ? 'MAX_TOKENS' : 'STOP', ...grounding };
}

/** The prompt includes cached tokens, and the candidates do not include thoughts. A count of zero is left out. */
function toUsageFields(output: Output, fault: Fault | undefined) {
  const { input, cached, reasoning, visible } = output;
  if (fault === 'no_usage' || fault === 'policy') return {};
  if (fault === 'zero') return { usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 } };
  const toolTokens = countToolTokens(output);
  return {
    usageMetadata: {
      promptTokenCount: input,
      ...(visible > 0 ? { candidatesTokenCount: visible } : {}),
      ...(toolTokens > 0 ? { toolUsePromptTokenCount: toolTokens } : {}),
      totalTokenCount: input + visible + toolTokens + reasoning,
      ...(cached > 0 ? { cachedContentTokenCount: cached } : {}),
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
      ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
    },
  };
}

function formatEvent(data: object): string {
  return `data: ${JSON.stringify(data)}\r\n\r\n`;
}
