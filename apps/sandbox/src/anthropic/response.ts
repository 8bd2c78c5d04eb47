/** An answer as Anthropic gives it: a message of content blocks, whole or as server-sent events. */

import type { Events } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import { wordsOf } from '../provider/tokens.ts';
import type { SandboxMessagesRequest } from './messages-request.ts';
import { citationsOf, type SearchBlock, searchBlocks } from './searches.ts';

const ERROR = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
/** Looks like a signature, and is none. */
const SIGNATURE = 'c2FuZGJveA==';

const STOP_REASONS = { end: 'end_turn', length: 'max_tokens', tool: 'tool_use' } as const;

export function messageId({ serial }: SandboxModelOutput): string {
  return `msg_${serial}`;
}

export function identityHeaders({ serial }: SandboxModelOutput): Readonly<Record<string, string>> {
  return { 'request-id': `req_${serial}` };
}

export function message(
  answer: SandboxModelOutput,
  { showsThoughts }: SandboxMessagesRequest,
  fault: Fault | undefined,
) {
  const { reasoning, visible, text, finish } = answer;
  const thinking = { type: 'thinking', thinking: showsThoughts ? wordsOf(reasoning) : '', signature: SIGNATURE };
  return {
    ...emptyMessage(answer),
    content: [
      ...(reasoning > 0 ? [thinking] : []),
      ...searchBlocks(answer),
      ...(visible > 0 ? contentBlocks(answer, text) : []),
    ],
    stop_reason: STOP_REASONS[finish],
    ...(fault === 'no_usage' ? {} : { usage: usageOf(answer, fault) }),
  };
}

/** Arguments that were cut are no JSON, and then none are given. */
function contentBlocks(answer: SandboxModelOutput, text: string) {
  const citations = citationsOf(answer);
  if (answer.tool === undefined) return [{ type: 'text', text, ...(citations.length > 0 ? { citations } : {}) }];
  const input = answer.finish === 'length' ? {} : JSON.parse(text);
  return Array.from({ length: answer.calls }, (_, call) => ({ ...toolUse(answer, call), input }));
}

function toolUse({ serial, tool }: SandboxModelOutput, call: number) {
  return { type: 'tool_use', id: `toolu_${serial}${call}`, name: tool, input: {} };
}

function emptyMessage(answer: SandboxModelOutput) {
  return {
    id: messageId(answer),
    type: 'message',
    role: 'assistant',
    model: answer.model.snapshot,
    content: [] as unknown[],
    stop_reason: null as string | null,
    stop_sequence: null,
  };
}

/** Anthropic's `input_tokens` are those that were not cached. */
function usageOf({ input, cached, reasoning, visible, searches }: SandboxModelOutput, fault: Fault | undefined) {
  const zero = fault === 'zero';
  const found = zero ? 0 : searches.filter(({ failed }) => !failed).length;
  return {
    input_tokens: zero ? 0 : input - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: zero ? 0 : cached,
    output_tokens: zero ? 0 : reasoning + visible,
    output_tokens_details: { thinking_tokens: zero ? 0 : reasoning },
    ...(searches.length > 0 ? { server_tool_use: { web_search_requests: found, web_fetch_requests: 0 } } : {}),
    service_tier: 'standard',
  };
}

export function eventsOf(
  answer: SandboxModelOutput,
  { showsThoughts }: SandboxMessagesRequest,
  fault: Fault | undefined,
): Events {
  const { reasoning, visible, pieces, tool, calls, finish } = answer;
  const usage = usageOf(answer, fault);
  const withUsage = <T>(value: T) => (fault === 'no_usage' ? {} : { usage: value });
  const thought = reasoning > 0 ? 1 : 0;
  const searched = searchBlocks(answer);
  const index = thought + searched.length;
  const message = {
    ...emptyMessage(answer),
    ...withUsage({ ...usage, output_tokens: Math.min(usage.output_tokens, 1) }),
  };
  const citations = citationsOf(answer);
  const empty = { type: 'text', text: '', ...(citations.length > 0 ? { citations: [] } : {}) };
  const copies = Math.max(1, calls);
  const blockAt = (call: number) => (tool === undefined ? empty : toolUse(answer, call));
  const started = (call: number) =>
    event({ type: 'content_block_start', index: index + call, content_block: blockAt(call) });
  const stopped = (call: number) => event({ type: 'content_block_stop', index: index + call });
  const [kind, field] = tool === undefined ? ['text_delta', 'text'] : ['input_json_delta', 'partial_json'];
  const opening =
    event({ type: 'message_start', message }) +
    (thought ? thoughts(showsThoughts ? wordsOf(reasoning) : '') : '') +
    searched.map((each, at) => searchEvents(each, thought + at)).join('') +
    (visible > 0 ? started(0) : '') +
    event({ type: 'ping' });
  const head = (call: number) =>
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index + call},"delta":{"type":"${kind}","${field}":`;
  const cited = citations.map((citation) => delta(index, { type: 'citations_delta', citation })).join('');
  return {
    opening,
    content: Array.from({ length: copies }, (_, call) =>
      pieces.map(({ json, tokens }, at) => {
        const before = call > 0 && at === 0 ? stopped(call - 1) + started(call) : '';
        return { event: `${before}${head(call)}${json}}}\n\n`, tokens };
      }),
    ).flat(),
    closing:
      (visible > 0 ? cited + stopped(copies - 1) : '') +
      event({
        type: 'message_delta',
        delta: { stop_reason: STOP_REASONS[finish], stop_sequence: null },
        ...withUsage(usage),
      }) +
      event({ type: 'message_stop' }),
    broken: 'event: content_block_delta\ndata: {"type":"content_block_de\n\n',
    error: event(ERROR),
  };
}

/** The query of a search comes in a piece of its own, what it found at once. */
function searchEvents(block: SearchBlock, index: number): string {
  const isCall = block.type === 'server_tool_use';
  const start = isCall ? { ...block, input: {} } : block;
  return (
    event({ type: 'content_block_start', index, content_block: start }) +
    (isCall ? delta(index, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }) : '') +
    event({ type: 'content_block_stop', index })
  );
}

function thoughts(thinking: string): string {
  return (
    event({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }) +
    (thinking === '' ? '' : delta(0, { type: 'thinking_delta', thinking })) +
    delta(0, { type: 'signature_delta', signature: SIGNATURE }) +
    event({ type: 'content_block_stop', index: 0 })
  );
}

function delta(index: number, piece: object): string {
  return event({ type: 'content_block_delta', index, delta: piece });
}

function event(data: { readonly type: string; readonly [field: string]: unknown }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
