/** Creates Anthropic's response, a message of content blocks, non-streaming or as server-sent events. */

import type { StreamParts } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import { generateProse } from '../provider/tokens.ts';
import type { SandboxMessagesRequest } from './messages-request.ts';
import { createSearchBlocks, DIRECT_CALLER, type SearchBlock, toCitations } from './searches.ts';

const ERROR = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

const STOP_REASONS = { end: 'end_turn', length: 'max_tokens', tool: 'tool_use' } as const;
const STOP_WITH_DETAILS = {
  stop_reason: 'refusal',
  stop_sequence: null,
  stop_details: {
    type: 'refusal',
    category: 'cyber',
    explanation: 'The request could enable cyber harm, as the sandbox was instructed.',
  },
} as const;

export function getMessageId({ serial }: SandboxModelOutput): string {
  return `msg_${serial}`;
}

export function createIdentityHeaders({ serial }: SandboxModelOutput): Readonly<Record<string, string>> {
  return { 'request-id': `req_${serial}` };
}

export function createMessage(
  output: SandboxModelOutput,
  { isThinkingVisible, signature }: SandboxMessagesRequest,
  fault: Fault | undefined,
) {
  const { reasoning, visible, text, finish } = output;
  const thinking = {
    type: 'thinking',
    thinking: isThinkingVisible ? generateProse(reasoning) : '',
    signature,
  };
  return {
    ...createEmptyMessage(output),
    content: [
      ...(reasoning > 0 ? [thinking] : []),
      ...createSearchBlocks(output),
      ...(visible > 0 ? createContentBlocks(output, text) : []),
    ],
    ...createStop(finish, fault),
    ...(fault === 'no_usage' ? {} : { usage: toUsage(output, fault) }),
  };
}

/** The input of a call is empty if the message reached the token limit: truncated arguments are not JSON. */
function createContentBlocks(output: SandboxModelOutput, text: string) {
  const citations = toCitations(output);
  if (output.tool === undefined) return [{ type: 'text', text, citations: citations.length > 0 ? citations : null }];
  const input = output.finish === 'length' ? {} : JSON.parse(text);
  return Array.from({ length: output.calls }, (_, call) => ({ ...createToolUse(output, call), input }));
}

function createToolUse({ serial, tool }: SandboxModelOutput, call: number) {
  return { type: 'tool_use', id: `toolu_${serial}${call}`, name: tool, input: {}, caller: DIRECT_CALLER };
}

function createEmptyMessage(output: SandboxModelOutput) {
  return {
    id: getMessageId(output),
    type: 'message',
    role: 'assistant',
    model: output.model.snapshot,
    content: [] as unknown[],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
  };
}

/** A paused turn is continued by a request that ends with its content. */
function createStop(finish: SandboxModelOutput['finish'], fault: Fault | undefined) {
  if (fault === 'refusal') return STOP_WITH_DETAILS;
  const stop_reason = fault === 'pause_turn' ? fault : STOP_REASONS[finish];
  return { stop_reason, stop_sequence: null, stop_details: null };
}

/** Anthropic's `input_tokens` exclude cached tokens. */
function toUsage(output: SandboxModelOutput, fault: Fault | undefined) {
  const { input, cached, hourCacheWrites, reasoning, visible, searches, reportedBill } = output;
  const zero = fault === 'zero';
  const hourWrites = zero ? 0 : hourCacheWrites;
  const searchCount = zero ? 0 : searches.filter(({ failed }) => !failed).length;
  return {
    input_tokens: zero ? 0 : input - cached,
    cache_creation_input_tokens: hourWrites,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: hourWrites },
    cache_read_input_tokens: zero ? 0 : cached,
    output_tokens: zero ? 0 : reasoning + visible,
    output_tokens_details: { thinking_tokens: zero ? 0 : reasoning },
    server_tool_use: searches.length > 0 ? { web_search_requests: searchCount, web_fetch_requests: 0 } : null,
    service_tier: reportedBill.serviceTier ?? 'standard',
    inference_geo: reportedBill.inferenceGeo ?? 'global',
    speed: reportedBill.speed ?? null,
  };
}

/** The end of a stream lacks what the start of the message has reported. */
function toDeltaUsage({ cache_creation, service_tier, inference_geo, speed, ...usage }: ReturnType<typeof toUsage>) {
  return usage;
}

export function toEvents(
  output: SandboxModelOutput,
  { isThinkingVisible, signature }: SandboxMessagesRequest,
  fault: Fault | undefined,
): StreamParts {
  const { reasoning, visible, chunks, tool, calls, finish } = output;
  const usage = toUsage(output, fault);
  const withUsage = <T>(value: T) => (fault === 'no_usage' ? {} : { usage: value });
  const thinkingBlockCount = reasoning > 0 ? 1 : 0;
  const searched = createSearchBlocks(output);
  const index = thinkingBlockCount + searched.length;
  const message = {
    ...createEmptyMessage(output),
    ...withUsage({ ...usage, output_tokens: Math.min(usage.output_tokens, 1) }),
  };
  const citations = toCitations(output);
  const empty = { type: 'text', text: '', citations: citations.length > 0 ? [] : null };
  const copies = Math.max(1, calls);
  const createBlock = (call: number) => (tool === undefined ? empty : createToolUse(output, call));
  const startBlock = (call: number) =>
    formatEvent({ type: 'content_block_start', index: index + call, content_block: createBlock(call) });
  const stopBlock = (call: number) => formatEvent({ type: 'content_block_stop', index: index + call });
  const [kind, field] = tool === undefined ? ['text_delta', 'text'] : ['input_json_delta', 'partial_json'];
  const opening =
    formatEvent({ type: 'message_start', message }) +
    (thinkingBlockCount ? createThinkingEvents(isThinkingVisible ? generateProse(reasoning) : '', signature) : '') +
    searched.map((block, at) => createSearchEvents(block, thinkingBlockCount + at)).join('') +
    (visible > 0 ? startBlock(0) : '') +
    formatEvent({ type: 'ping' });
  const formatDeltaHead = (call: number) =>
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index + call},"delta":{"type":"${kind}","${field}":`;
  const cited = citations.map((citation) => formatDelta(index, { type: 'citations_delta', citation })).join('');
  return {
    opening,
    content: Array.from({ length: copies }, (_, call) =>
      chunks.map(({ json, tokens }, at) => {
        const before = call > 0 && at === 0 ? stopBlock(call - 1) + startBlock(call) : '';
        return { event: `${before}${formatDeltaHead(call)}${json}}}\n\n`, tokens };
      }),
    ).flat(),
    closing:
      (visible > 0 ? cited + stopBlock(copies - 1) : '') +
      formatEvent({
        type: 'message_delta',
        delta: { ...createStop(finish, fault), container: null },
        ...withUsage(toDeltaUsage(usage)),
      }) +
      formatEvent({ type: 'message_stop' }),
    malformed: 'event: content_block_delta\ndata: {"type":"content_block_de\n\n',
    error: formatEvent(ERROR),
  };
}

/** A search query follows its block start as a delta; search results are part of the block start. */
function createSearchEvents(block: SearchBlock, index: number): string {
  const isCall = block.type === 'server_tool_use';
  const start = isCall ? { ...block, input: {} } : block;
  return (
    formatEvent({ type: 'content_block_start', index, content_block: start }) +
    (isCall ? formatDelta(index, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }) : '') +
    formatEvent({ type: 'content_block_stop', index })
  );
}

function createThinkingEvents(thinking: string, signature: string): string {
  return (
    formatEvent({
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'thinking', thinking: '', signature: '' },
    }) +
    (thinking === '' ? '' : formatDelta(0, { type: 'thinking_delta', thinking })) +
    formatDelta(0, { type: 'signature_delta', signature }) +
    formatEvent({ type: 'content_block_stop', index: 0 })
  );
}

function formatDelta(index: number, payload: object): string {
  return formatEvent({ type: 'content_block_delta', index, delta: payload });
}

function formatEvent(data: { readonly type: string; readonly [field: string]: unknown }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
