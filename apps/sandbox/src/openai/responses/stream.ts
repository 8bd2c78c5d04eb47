/** Creates OpenAI's response as server-sent events, numbered from 0. */

import type { Frame, StreamParts } from '../../provider/delivery.ts';
import type { Fault } from '../../provider/directive.ts';
import type { TextChunk } from '../../provider/model-output.ts';
import type { SandboxContentPart } from '../chat-request.ts';
import { type TokenLogprob, toEventLogprobs, toLogprobs } from '../logprobs.ts';
import {
  createFinishedResponse,
  createReasoningItem,
  createResponseObject,
  createSearchItems,
  createTextPart,
  type OpenAiOutput,
  type SandboxOutputItem,
  SUMMARY,
  toCitations,
  toVisibleItems,
} from './output.ts';
import type { SandboxResponsesRequest } from './request.ts';

/** The end of this text pads each delta. OpenAI's padding is random, so that the size does not reveal the word. */
const PADDING = 'hG7uQ2vXk9TzLw4R';
const ERROR = { code: 'server_error', message: 'The server had an error while processing your request.' };

/** The field with the content of a call, by the type of the call. */
const CONTENT_FIELDS: Readonly<Record<string, string>> = { function_call: 'arguments', custom_tool_call: 'input' };

type Event = SandboxContentPart & { readonly type: string };

export function toEvents(
  output: OpenAiOutput,
  request: SandboxResponsesRequest,
  fault: Fault | undefined,
): StreamParts {
  const number = { next: 0 };
  const formatFrames = (events: readonly Event[]) => events.map((event) => formatSse(event, number.next++)).join('');
  const started = createResponseObject(output, request, {});
  const opening = formatFrames([
    ...['response.created', 'response.in_progress'].map((type) => ({ type, response: started })),
    ...createReasoningEvents(output, request),
    ...createSearchEvents(output),
  ]);
  const response = createFinishedResponse(output, request, fault);
  const failedEvent = (body: object, sequence: number) =>
    formatSse({ type: 'response.failed', response: body }, sequence);
  if (fault === 'policy_billed')
    return { opening, content: [], closing: failedEvent(response, number.next), malformed: '', error: '' };
  const first = number.next;
  const positions = toItemPositions(output, request);
  const content = createContentFrames(output, request, positions, formatFrames);
  const half = content.slice(0, content.length / 2).reduce((events, { count }) => events + count, first);
  const unopened = content.length === 0;
  const closing = formatFrames([
    ...(unopened ? positions : positions.slice(-1)).flatMap((position) => [
      ...(unopened ? createOpeningEvents(position, request) : []),
      ...createClosingEvents(position, output),
    ]),
    { type: `response.${response.status}`, response },
  ]);
  const failed = createResponseObject(output, request, { status: 'failed', error: ERROR });
  const error = failedEvent(failed, half);
  return { opening, content, closing, malformed: 'event: response.output_text.delta\ndata: {"type":"respo\n\n', error };
}

function formatSse({ type, ...data }: Event, sequence_number: number): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...data })}\n\n`;
}

/** Reasoning ends before the first word of the text. */
function createReasoningEvents(output: OpenAiOutput, request: SandboxResponsesRequest): readonly Event[] {
  const item = createReasoningItem(output, request);
  if (!item) return [];
  const at = { item_id: item.id, output_index: 0, summary_index: 0 };
  const part = { type: 'summary_text', text: SUMMARY };
  const summary = [
    { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
    { type: 'response.reasoning_summary_text.delta', ...at, delta: SUMMARY },
    { type: 'response.reasoning_summary_text.done', ...at, text: SUMMARY },
    { type: 'response.reasoning_summary_part.done', ...at, part },
  ];
  return [
    { type: 'response.output_item.added', output_index: 0, item: { ...item, summary: [] } },
    ...(request.extras.summary ? summary : []),
    { type: 'response.output_item.done', output_index: 0, item },
  ];
}

/** Searches run before the first word of the text. */
function createSearchEvents(output: OpenAiOutput): readonly Event[] {
  const first = output.reasoning > 0 ? 1 : 0;
  return createSearchItems(output).flatMap((item, at) => {
    const output_index = first + at;
    const started = { ...item, status: 'in_progress' };
    const createProgressEvent = (state: string) => ({
      type: `response.web_search_call.${state}`,
      item_id: item.id,
      output_index,
    });
    return [
      { type: 'response.output_item.added', output_index, item: started },
      ...['in_progress', 'searching', 'completed'].map(createProgressEvent),
      { type: 'response.output_item.done', output_index, item },
    ];
  });
}

/** A visible item and its index in the output. */
interface ItemPosition {
  readonly item: SandboxOutputItem;
  readonly output_index: number;
}

function toItemPositions(output: OpenAiOutput, request: SandboxResponsesRequest): readonly ItemPosition[] {
  const before = (output.reasoning > 0 ? 1 : 0) + output.searches.length;
  return toVisibleItems(output, request).map((item, at) => ({ item, output_index: before + at }));
}

/** The first frame of an item begins with the events that close the previous item and open this item. */
function createContentFrames(
  output: OpenAiOutput,
  request: SandboxResponsesRequest,
  positions: readonly ItemPosition[],
  formatFrames: (events: readonly Event[]) => string,
) {
  return positions.flatMap((position, at) => {
    const before = positions[at - 1];
    const opening = [...(before ? createClosingEvents(before, output) : []), ...createOpeningEvents(position, request)];
    return output.chunks.map((chunk, i): Frame & { readonly count: number } => {
      const events = [...(i === 0 ? opening : []), createDeltaEvent(position, request, chunk)];
      return { event: formatFrames(events), tokens: chunk.tokens, count: events.length };
    });
  });
}

function createOpeningEvents(
  { item, output_index }: ItemPosition,
  { extras }: SandboxResponsesRequest,
): readonly Event[] {
  const empty = item.type === 'message' ? { content: [] } : { [CONTENT_FIELDS[item.type] as string]: '' };
  const added = {
    type: 'response.output_item.added',
    output_index,
    item: { ...item, status: 'in_progress', ...empty },
  };
  if (item.type !== 'message') return [added];
  const part = { ...createTextPart('', extras.logprobs) };
  return [added, { type: 'response.content_part.added', item_id: item.id, output_index, content_index: 0, part }];
}

function createDeltaEvent(
  { item, output_index }: ItemPosition,
  { extras, obfuscate }: SandboxResponsesRequest,
  { json }: TextChunk,
): Event {
  const delta = JSON.parse(json) as string;
  const padding = obfuscate ? { obfuscation: PADDING.slice(json.length % PADDING.length) } : {};
  const position = { item_id: item.id, output_index };
  if (item.type !== 'message')
    return { type: `response.${item.type}_${CONTENT_FIELDS[item.type]}.delta`, ...position, delta, ...padding };
  const logprobs = toEventLogprobs(toLogprobs(delta, extras.logprobs));
  return { type: 'response.output_text.delta', ...position, content_index: 0, delta, logprobs, ...padding };
}

function createClosingEvents({ item, output_index }: ItemPosition, output: OpenAiOutput): readonly Event[] {
  const position = { item_id: item.id, output_index };
  const done = { type: 'response.output_item.done', output_index, item };
  if (item.type !== 'message') {
    const contentField = CONTENT_FIELDS[item.type] as string;
    return [{ type: `response.${item.type}_${contentField}.done`, ...position, [contentField]: output.text }, done];
  }
  const [part] = item.content as readonly SandboxContentPart[];
  const at = { ...position, content_index: 0 };
  const annotations = toCitations(output).map((annotation, annotation_index) => {
    return { type: 'response.output_text.annotation.added', ...at, annotation_index, annotation };
  });
  return [
    ...annotations,
    {
      type: 'response.output_text.done',
      ...at,
      text: output.text,
      logprobs: toEventLogprobs(part?.logprobs as TokenLogprob[]),
    },
    { type: 'response.content_part.done', ...at, part },
    done,
  ];
}
