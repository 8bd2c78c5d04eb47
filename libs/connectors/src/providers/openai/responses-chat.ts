/** Translates responses of OpenAI's Responses API to chat completions. */

import type { Completion, CompletionIdentity, SearchStatus } from '#application';
import { type JsonObject } from '#kernel';
import type { ClassifyError } from '../../http/error-rules.ts';
import type { BillFormat } from '../../http/reported-bill.ts';
import type { ForwardEvents } from '../../http/stream-relay.ts';
import { formatJsonEvent, ResponsesEventTranslator, toSearchStatus } from './responses.ts';

const FINISH_REASONS: Readonly<Record<string, string>> = {
  max_output_tokens: 'length',
  content_filter: 'content_filter',
};

const NO_EVENTS = new Uint8Array();

/** Translates the events of a response to chat completion chunks. */
export class ResponsesToChatTranslator extends ResponsesEventTranslator {
  private readonly head: object;
  /** The index of each tool call, by the index of its output item. */
  private readonly calls = new Map<unknown, number>();
  private hasSentRole = false;
  /** The index of each search, by the index of its output item. */
  private readonly searches = new Map<unknown, number>();
  private pendingStatuses: SearchStatus[] = [];

  constructor(
    { id, model, provider, created }: CompletionIdentity,
    classifyError?: ClassifyError,
    billFormat?: BillFormat,
  ) {
    super(classifyError, billFormat);
    this.head = { id, object: 'chat.completion.chunk', created, model, provider };
  }

  protected override translateEvents(events: readonly string[], forward: ForwardEvents): void {
    for (const event of events) {
      super.translateEvents([event], forward);
      for (const status of this.pendingStatuses) forward(NO_EVENTS, status);
      this.pendingStatuses = [];
    }
  }

  protected override translateOutput(event: JsonObject): string {
    if ((event.item as JsonObject | undefined)?.type === 'web_search_call') return this.handleSearch(event);
    const delta = this.toDelta(event);
    if (delta === undefined) return '';
    const { logprobs } = event;
    return this.formatChunk(delta, null, Array.isArray(logprobs) && logprobs.length > 0 ? { content: logprobs } : null);
  }

  protected override createFinalEvent({ response }: JsonObject): string {
    return this.formatChunk({}, toFinishReason((response ?? {}) as JsonObject, this.calls.size > 0));
  }

  /** The query is known only at the end of a search, so its start is reported only then, together with its end. */
  private handleSearch({ type, item, output_index }: JsonObject): string {
    const at = this.searches.get(output_index) ?? this.searches.size;
    this.searches.set(output_index, at);
    const status = toSearchStatus(item as JsonObject, at);
    if (type === 'response.output_item.done' && status)
      this.pendingStatuses.push({ ...status, state: 'searching' }, status);
    return this.hasSentRole ? '' : this.formatChunk({}, null);
  }

  private toDelta({ type, delta, item, output_index, annotation }: JsonObject): JsonObject | undefined {
    switch (type) {
      case 'response.output_text.delta':
        return { content: delta };
      case 'response.refusal.delta':
        return { refusal: delta };
      case 'response.reasoning_summary_text.delta':
        return { reasoning: delta };
      case 'response.output_text.annotation.added':
        return { annotations: [toCitation(annotation as JsonObject)] };
      case 'response.function_call_arguments.delta':
        return { tool_calls: [{ index: this.calls.get(output_index), function: { arguments: delta } }] };
      case 'response.output_item.added':
        return this.handleItemStart(item as JsonObject, output_index);
      default:
        return undefined;
    }
  }

  private handleItemStart(item: JsonObject, at: unknown): JsonObject | undefined {
    // Not every item has deltas, but a client receives an event as soon as the first item starts.
    if (item.type !== 'function_call') return this.hasSentRole ? undefined : {};
    const index = this.calls.size;
    this.calls.set(at, index);
    return { tool_calls: [{ index, ...toToolCall({ ...item, arguments: '' }) }] };
  }

  private formatChunk(delta: JsonObject, finish_reason: string | null, logprobs: object | null = null): string {
    const role = this.hasSentRole ? {} : { role: 'assistant', content: '' };
    this.hasSentRole = true;
    return formatJsonEvent({
      ...this.head,
      choices: [{ index: 0, delta: { ...role, ...delta }, logprobs, finish_reason }],
    });
  }
}

/** Translates a non-streaming response to a `chat.completion` with the identity of the call. */
export function toChatCompletion(completion: Completion, identity: CompletionIdentity): Completion {
  const output = completion.body.output as readonly JsonObject[];
  const parts = output.flatMap(({ type, content }) => (type === 'message' ? toArray(content) : []));
  const calls = output.filter(({ type }) => type === 'function_call').map(toToolCall);
  const content = joinText(parts, 'text');
  const refusal = joinText(parts, 'refusal');
  const reasoning = joinText(
    output.flatMap(({ type, summary }) => (type === 'reasoning' ? toArray(summary) : [])),
    'text',
  );
  const logprobs = parts.flatMap((part) => toArray(part.logprobs));
  const message = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
    refusal: refusal === '' ? null : refusal,
    annotations: collectAnnotations(parts),
    ...(reasoning === '' ? {} : { reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const choice = {
    index: 0,
    message,
    logprobs: logprobs.length > 0 ? { content: logprobs, refusal: null } : null,
    finish_reason: toFinishReason(completion.body, calls.length > 0),
  };
  return {
    ...completion,
    protocol: 'chat',
    body: { ...identity, object: 'chat.completion', choices: [choice], system_fingerprint: null },
  };
}

/** Positions of sources are relative to their part in a response, and to the complete text in a chat. */
function collectAnnotations(parts: readonly JsonObject[]): readonly object[] {
  let before = 0;
  return parts.flatMap(({ text, annotations }) => {
    const from = before;
    before += typeof text === 'string' ? text.length : 0;
    return toArray(annotations).map((annotation) => toCitation(annotation, from));
  });
}

function toCitation({ url, title, start_index, end_index }: JsonObject, from = 0) {
  return {
    type: 'url_citation',
    url_citation: {
      url,
      title,
      start_index: Number(start_index ?? 0) + from,
      end_index: Number(end_index ?? 0) + from,
    },
  };
}

function toToolCall({ call_id, name, arguments: args }: JsonObject) {
  return { id: call_id, type: 'function', function: { name, arguments: args } };
}

function toFinishReason({ incomplete_details }: JsonObject, called: boolean): string {
  const { reason } = (incomplete_details ?? {}) as JsonObject;
  return FINISH_REASONS[String(reason)] ?? (called ? 'tool_calls' : 'stop');
}

function joinText(parts: readonly JsonObject[], field: 'text' | 'refusal'): string {
  return parts.map((part) => part[field] ?? '').join('');
}

function toArray(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value : [];
}
