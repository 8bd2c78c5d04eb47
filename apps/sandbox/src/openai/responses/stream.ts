/** OpenAI's response as server-sent events, numbered from 0. */

import type { Events, Frame } from '../../provider/delivery.ts';
import type { Fault } from '../../provider/directive.ts';
import type { Piece } from '../../provider/model-output.ts';
import type { SandboxContentPart } from '../chat-request.ts';
import { logprobsOf } from '../logprobs.ts';
import {
  citationsOf,
  finished,
  type OpenAiAnswer,
  reasoningItem,
  responseObject,
  type SandboxOutputItem,
  SUMMARY,
  saidOf,
  searchItems,
  textPart,
} from './output.ts';
import type { SandboxResponsesRequest } from './request.ts';

/** OpenAI pads deltas with this many random characters at most, so that their size does not reveal the word. */
const PADDING = 'hG7uQ2vXk9TzLw4R';
const ERROR = { code: 'server_error', message: 'The server had an error while processing your request.' };

/** What is written of a call, by its type. */
const WRITTEN: Readonly<Record<string, string>> = { function_call: 'arguments', custom_tool_call: 'input' };

type Event = SandboxContentPart & { readonly type: string };

export function eventsOf(answer: OpenAiAnswer, request: SandboxResponsesRequest, fault: Fault | undefined): Events {
  const number = { next: 0 };
  const frames = (events: readonly Event[]) => events.map((event) => sse(event, number.next++)).join('');
  const started = responseObject(answer, request, {});
  const opening = frames([
    ...['response.created', 'response.in_progress'].map((type) => ({ type, response: started })),
    ...thought(answer, request),
    ...searched(answer),
  ]);
  const first = number.next;
  const said = placesOf(answer, request);
  const content = contentOf(answer, request, said, frames);
  const half = content.slice(0, content.length / 2).reduce((events, { count }) => events + count, first);
  const response = finished(answer, request, fault);
  const unopened = content.length === 0;
  const closing = frames([
    ...(unopened ? said : said.slice(-1)).flatMap((place) => [
      ...(unopened ? opened(place, request) : []),
      ...closed(place, answer),
    ]),
    { type: `response.${response.status}`, response },
  ]);
  const failed = responseObject(answer, request, { status: 'failed', error: ERROR });
  const error = sse({ type: 'response.failed', response: failed }, half);
  return { opening, content, closing, broken: 'event: response.output_text.delta\ndata: {"type":"respo\n\n', error };
}

function sse({ type, ...more }: Event, sequence_number: number): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...more })}\n\n`;
}

/** The reasoning is over before the first word. */
function thought(answer: OpenAiAnswer, request: SandboxResponsesRequest): readonly Event[] {
  const item = reasoningItem(answer, request);
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

/** Searches are made before the first word as well. */
function searched(answer: OpenAiAnswer): readonly Event[] {
  const first = answer.reasoning > 0 ? 1 : 0;
  return searchItems(answer).flatMap((item, at) => {
    const output_index = first + at;
    const { action: _, ...started } = { ...item, status: 'in_progress' } as SandboxOutputItem & {
      readonly action?: unknown;
    };
    const progress = (state: string) => ({ type: `response.web_search_call.${state}`, item_id: item.id, output_index });
    return [
      { type: 'response.output_item.added', output_index, item: started },
      ...['in_progress', 'searching', 'completed'].map(progress),
      { type: 'response.output_item.done', output_index, item },
    ];
  });
}

/** An item of what is said, and where it stands in the output. */
interface Place {
  readonly item: SandboxOutputItem;
  readonly output_index: number;
}

function placesOf(answer: OpenAiAnswer, request: SandboxResponsesRequest): readonly Place[] {
  const before = (answer.reasoning > 0 ? 1 : 0) + answer.searches.length;
  return saidOf(answer, request).map((item, at) => ({ item, output_index: before + at }));
}

/** The first piece of an item comes with its beginning, and with the end of the item before it. */
function contentOf(
  answer: OpenAiAnswer,
  request: SandboxResponsesRequest,
  said: readonly Place[],
  frames: (events: readonly Event[]) => string,
) {
  return said.flatMap((place, at) => {
    const before = said[at - 1];
    const opening = [...(before ? closed(before, answer) : []), ...opened(place, request)];
    return answer.pieces.map((piece, i): Frame & { readonly count: number } => {
      const events = [...(i === 0 ? opening : []), deltaOf(place, request, piece)];
      return { event: frames(events), tokens: piece.tokens, count: events.length };
    });
  });
}

function opened({ item, output_index }: Place, { extras }: SandboxResponsesRequest): readonly Event[] {
  const empty = item.type === 'message' ? { content: [] } : { [WRITTEN[item.type] as string]: '' };
  const added = {
    type: 'response.output_item.added',
    output_index,
    item: { ...item, status: 'in_progress', ...empty },
  };
  if (item.type !== 'message') return [added];
  const part = { ...textPart('', extras.logprobs) };
  return [added, { type: 'response.content_part.added', item_id: item.id, output_index, content_index: 0, part }];
}

function deltaOf(
  { item, output_index }: Place,
  { extras, obfuscate }: SandboxResponsesRequest,
  { json }: Piece,
): Event {
  const delta = JSON.parse(json) as string;
  const padding = obfuscate ? { obfuscation: PADDING.slice(json.length % PADDING.length) } : {};
  const place = { item_id: item.id, output_index };
  if (item.type !== 'message')
    return { type: `response.${item.type}_${WRITTEN[item.type]}.delta`, ...place, delta, ...padding };
  const logprobs = logprobsOf(delta, extras.logprobs);
  return { type: 'response.output_text.delta', ...place, content_index: 0, delta, logprobs, ...padding };
}

function closed({ item, output_index }: Place, answer: OpenAiAnswer): readonly Event[] {
  const place = { item_id: item.id, output_index };
  const done = { type: 'response.output_item.done', output_index, item };
  if (item.type !== 'message') {
    const written = WRITTEN[item.type] as string;
    const name = item.type === 'function_call' ? { name: item.name } : {};
    return [{ type: `response.${item.type}_${written}.done`, ...place, ...name, [written]: answer.text }, done];
  }
  const [part] = item.content as readonly SandboxContentPart[];
  const at = { ...place, content_index: 0 };
  const annotations = citationsOf(answer).map((annotation, annotation_index) => {
    return { type: 'response.output_text.annotation.added', ...at, annotation_index, annotation };
  });
  return [
    ...annotations,
    { type: 'response.output_text.done', ...at, text: answer.text, logprobs: part?.logprobs },
    { type: 'response.content_part.done', ...at, part },
    done,
  ];
}
