/** Translates Anthropic's non-streaming response to OpenAI's `chat.completion`. */
import { type Completion, type CompletionIdentity, UpstreamError } from '#application';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';
import { extractGeneratedText } from '../chat/partial-text.ts';
import {
  type AnthropicContentBlock,
  isReasoning,
  type MessageStop,
  PAUSE_TURN,
  toAnnotations,
  toChoiceEnd,
  toReasoningDetail,
} from './blocks.ts';
import { removeFence } from './json-text.ts';
import { createPausedResponse } from './paused-response.ts';
import { SearchTracker } from './searches.ts';
import { parseAnthropicUsage } from './usage.ts';

interface AnthropicMessage extends MessageStop {
  readonly content: readonly AnthropicContentBlock[];
  readonly usage?: unknown;
}

interface CompletionOptions {
  /** Leaves the model's reasoning out of the completion. */
  readonly withoutReasoning?: boolean;
  /** Whether Anthropic's web search was enabled. */
  readonly hasSearched?: boolean;
  /** Content of the turn that the completion continues. The body includes it. */
  readonly paused?: readonly AnthropicContentBlock[];
  readonly billFormat?: BillFormat;
  /** Whether the text is JSON, from which a code fence is removed. */
  readonly expectsJson?: boolean;
}

/** @throws UpstreamError if `text` is not a message */
export function parseAnthropicCompletion(
  text: string,
  identity: CompletionIdentity,
  {
    withoutReasoning = false,
    hasSearched = false,
    paused = [],
    billFormat = {},
    expectsJson = false,
  }: CompletionOptions = {},
): Completion {
  const message = parseMessage(text);
  const { content, usage, stop_reason } = message;
  const turn = [...paused, ...content];
  const pausedResponse = hasSearched && stop_reason === PAUSE_TURN ? createPausedResponse(turn) : undefined;
  const end = toChoiceEnd(message);
  const refusal = end.stop_details?.explanation ?? null;
  const visibleContent = withoutReasoning ? turn.filter((block) => !isReasoning(block)) : turn;
  const choice = {
    index: 0,
    message: { ...toAssistantMessage(visibleContent, expectsJson), refusal },
    logprobs: null,
    ...end,
  };
  return {
    kind: 'complete',
    protocol: 'chat',
    body: { ...identity, object: 'chat.completion', choices: [choice], system_fingerprint: null },
    usage: parseAnthropicUsage(usage),
    vendorId: () => parseProviderRequestId(message),
    reportedBill: parseReportedBill(message, billFormat),
    getDeliveredText: () => content.map(getGeneratedText).join(''),
    ...(hasSearched ? { searches: collectSearches({ paused, content, usage }) } : {}),
    ...(pausedResponse ? { pausedResponse } : {}),
  };
}

function parseMessage(text: string): AnthropicMessage {
  let message: Partial<AnthropicMessage> | null = null;
  try {
    message = JSON.parse(text);
  } catch {} // reported below, like any other unexpected response
  if (!Array.isArray(message?.content) || typeof message.stop_reason !== 'string') {
    const details = {
      status: 200,
      deliveredText: extractGeneratedText(text),
      vendorId: parseProviderRequestId(message),
    };
    throw new UpstreamError('upstream_error', 'The provider sent a response that is not a message', details);
  }
  return message as AnthropicMessage;
}

function toAssistantMessage(content: readonly AnthropicContentBlock[], expectsJson: boolean) {
  const generatedText = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  const text = expectsJson ? removeFence(generatedText) : generatedText;
  const reasoning = content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('');
  const details = content.filter(isReasoning).map((block, index) => toReasoningDetail(index, block));
  const annotations = collectAnnotations(content);
  const calls = content.flatMap((block) => (block.type === 'tool_use' ? [toToolCall(block)] : []));
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    ...(annotations.length === 0 ? {} : { annotations }),
    ...(reasoning === '' ? {} : { reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** Returns the sources of each text block, with the position of the block in the complete text. */
function collectAnnotations(content: readonly AnthropicContentBlock[]): readonly object[] {
  let length = 0;
  return content.flatMap((block) => {
    if (block.type !== 'text') return [];
    const start = length;
    length += block.text.length;
    return toAnnotations(block.citations ?? [], start, length);
  });
}

function collectSearches({
  paused,
  content,
  usage,
}: Required<Pick<CompletionOptions, 'paused'>> & Pick<AnthropicMessage, 'content' | 'usage'>): Completion['searches'] {
  const searches = new SearchTracker(paused);
  searches.recordContent(content);
  searches.recordUsage(usage);
  return { statuses: searches.statuses, invoiced: searches.invoiced };
}

function toToolCall({ id, name, input }: Extract<AnthropicContentBlock, { type: 'tool_use' }>) {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } };
}

function getGeneratedText(block: AnthropicContentBlock): string {
  if (block.type === 'text') return block.text;
  if (block.type === 'thinking') return block.thinking;
  return block.type === 'tool_use' ? block.name + JSON.stringify(block.input ?? {}) : '';
}
