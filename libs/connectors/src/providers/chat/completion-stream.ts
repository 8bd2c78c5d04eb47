/** Converts a complete response to the stream that a client of the gateway has requested. */
import { type Completion, type CompletionStream, formatSseEvent } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';
import { NO_EVENTS } from '../../http/stream-relay.ts';

/**
 * Returns a stream whose events contain the complete output at once. The provider ended the response before its first
 * event, so the stream cannot be interrupted and has no idle time.
 */
export function toCompletionStream(completion: Completion): CompletionStream {
  const { protocol, body, usage, searches } = completion;
  const text = completion.getDeliveredText();
  let hasForwarded = false;
  return {
    kind: 'stream',
    protocol,
    async pipeTo(receiver) {
      for (const status of searches?.statuses ?? []) {
        await receiver(NO_EVENTS, { ...status, state: 'searching' });
        await receiver(NO_EVENTS, status);
      }
      const events = protocol === 'chat' ? toChunks(body) : toResponseEvents(body);
      hasForwarded = text !== '';
      void receiver(Buffer.from(events.map((event) => formatSseEvent(JSON.stringify(event))).join('')));
    },
    usage: () => usage,
    getInputUsage: () => usage,
    vendorId: () => completion.vendorId(),
    reportedBill: () => completion.reportedBill ?? {},
    getDeliveredText: () => text,
    getMaxGeneratedTokens: () => Buffer.byteLength(text),
    hasForwarded: () => hasForwarded,
    getIdleMs: () => 0,
    getPausedMs: () => 0,
    ...(completion.sampling ? { sampling: completion.sampling } : {}),
    countInvoicedSearches: () => searches?.invoiced ?? 0,
  };
}

/** Converts a `chat.completion` to chunks: for each choice one with its message, and one with its end. */
function toChunks({ choices, usage, object, ...head }: JsonObject): readonly JsonObject[] {
  const toChunk = (choice: JsonObject) => ({ ...head, object: 'chat.completion.chunk', choices: [choice] });
  return toObjects(choices).flatMap(({ message, logprobs = null, finish_reason, ...choice }) => [
    toChunk({ ...choice, delta: toDelta(message as JsonObject), logprobs, finish_reason: null }),
    toChunk({ ...choice, delta: {}, logprobs: null, finish_reason }),
  ]);
}

/** Only in a stream do the calls have an index. */
function toDelta(message: JsonObject): JsonObject {
  const { tool_calls, ...fields } = omitNulls(message);
  if (tool_calls === undefined) return fields;
  return { ...fields, tool_calls: toObjects(tool_calls).map((call, index) => ({ index, ...call })) };
}

/** Converts a response to those of its events that contain its output and its end. */
function toResponseEvents({ output, status, incomplete_details }: JsonObject): readonly JsonObject[] {
  const response = { object: 'response', output, incomplete_details };
  return [
    ...toObjects(output).flatMap((item, output_index) => [
      { type: 'response.output_item.added', output_index, item: { ...item, ...EMPTY_CONTENT[String(item.type)] } },
      ...toDeltaEvents(item).map((event) => ({ ...event, output_index, item_id: item.id })),
      { type: 'response.output_item.done', output_index, item },
    ]),
    { type: status === 'incomplete' ? 'response.incomplete' : 'response.completed', response },
  ];
}

/** What an item has before its first delta. */
const EMPTY_CONTENT: Readonly<Record<string, JsonObject>> = {
  message: { status: 'in_progress', content: [] },
  function_call: { status: 'in_progress', arguments: '' },
  custom_tool_call: { status: 'in_progress', input: '' },
  reasoning: { summary: [] },
};

function toDeltaEvents({ type, content, summary, arguments: args, input }: JsonObject): readonly JsonObject[] {
  switch (type) {
    case 'message':
      return toObjects(content).flatMap(toPartEvents);
    case 'function_call':
      return [
        { type: 'response.function_call_arguments.delta', delta: args },
        { type: 'response.function_call_arguments.done', arguments: args },
      ];
    case 'custom_tool_call':
      return [
        { type: 'response.custom_tool_call_input.delta', delta: input },
        { type: 'response.custom_tool_call_input.done', input },
      ];
    case 'reasoning':
      return toObjects(summary).flatMap((part, summary_index) => [
        { type: 'response.reasoning_summary_part.added', summary_index, part: { ...part, text: '' } },
        { type: 'response.reasoning_summary_text.delta', summary_index, delta: part.text },
        { type: 'response.reasoning_summary_text.done', summary_index, text: part.text },
        { type: 'response.reasoning_summary_part.done', summary_index, part },
      ]);
    default:
      return [];
  }
}

function toPartEvents(part: JsonObject, content_index: number): readonly JsonObject[] {
  const { type, text, refusal, annotations, logprobs } = part;
  const isText = type === 'output_text';
  const emptyPart = isText ? { ...part, text: '', annotations: [], logprobs: [] } : { ...part, refusal: '' };
  const at = { content_index };
  return [
    { type: 'response.content_part.added', ...at, part: emptyPart },
    isText
      ? { type: 'response.output_text.delta', ...at, delta: text, logprobs: logprobs ?? [] }
      : { type: 'response.refusal.delta', ...at, delta: refusal },
    ...toObjects(annotations).map((annotation, annotation_index) => ({
      type: 'response.output_text.annotation.added',
      ...at,
      annotation_index,
      annotation,
    })),
    isText
      ? { type: 'response.output_text.done', ...at, text, logprobs: logprobs ?? [] }
      : { type: 'response.refusal.done', ...at, refusal },
    { type: 'response.content_part.done', ...at, part },
  ];
}

function toObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function omitNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
