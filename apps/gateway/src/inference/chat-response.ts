/** How the answer to a chat is written, whole or as a stream: in OpenAI's shapes, with the additions that OpenRouter's clients expect. */
import type { FastifyReply } from 'fastify';
import {
  type ChatBody,
  type CompletionSource,
  type CompletionWriter,
  formatSseEvent,
  type Receipt,
  SSE_DONE,
  type TranslateChunk,
  toCostDetails,
  translateEvents,
} from '#application';
import { getQuantity } from '#domain';
import { toUsdJsonNumber } from '#kernel';
import { selectErrorFormat } from '../edge/errors/error-formats.ts';
import { INTERNAL_ERROR, toErrorResponse } from '../edge/errors/errors.ts';
import { SseWriter } from '../edge/responses/sse-writer.ts';

/** Usage with its cost: tokens are given as OpenAI counts them, where the parts are contained in the sums. */
function toUsageJson(receipt: Receipt) {
  const { usage, charged } = receipt;
  const prompt = getQuantity('input', usage);
  const generated = getQuantity('output', usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: generated,
    total_tokens: prompt + generated,
    cost: toUsdJsonNumber(charged),
    prompt_tokens_details: {
      cached_tokens: getQuantity('cacheRead', usage),
      cache_write_tokens: getQuantity('cacheWrite', usage),
    },
    completion_tokens_details: { reasoning_tokens: getQuantity('reasoning', usage) },
    // OpenRouter's strict clients refuse usage without the two parts.
    cost_details: toCostDetails(receipt, 'completions'),
  };
}

export function toChatCompletion(body: Readonly<Record<string, unknown>>, receipt: Receipt) {
  return { ...body, system_fingerprint: body.system_fingerprint ?? null, usage: toUsageJson(receipt) };
}

/** A client of a chat. Once events have been sent, an error can only be another event. */
export class ChatStreamWriter extends SseWriter implements CompletionWriter {
  /** Unix seconds: of all chunks. */
  readonly created = Math.floor(Date.now() / 1000);
  private model: string;

  /**
   * @param body the request, by which the last chunk has no choice, or an empty one
   * @param translate the other shape that its client knows, if it does
   */
  constructor(
    reply: FastifyReply,
    private readonly body: ChatBody,
    private readonly translate?: TranslateChunk,
  ) {
    super(reply);
    this.model = body.model;
  }

  override begin(source?: CompletionSource): void {
    this.model = source?.model ?? this.model;
    super.begin();
  }

  override write(events: Uint8Array): Promise<void> | undefined {
    return super.write(this.translate ? translateEvents(events, this.translate) : events);
  }

  end(receipt: Receipt | undefined, failure?: unknown): void {
    const { requestId, created, model, translate = identity } = this;
    const head = { id: `gen-${requestId}`, object: 'chat.completion.chunk', created, model };
    const usage = receipt ? [{ ...head, choices: this.lastChoices, usage: toUsageJson(receipt) }] : [];
    const error = failure
      ? selectErrorFormat(this.request).createEvent(toErrorResponse(failure) ?? INTERNAL_ERROR)
      : undefined;
    const events = error ? [{ ...head, ...toErrorChunk(error) }, ...usage] : usage;
    this.finish(
      [...events.map((event) => JSON.stringify(translate(event))), SSE_DONE]
        .map((data) => formatSseEvent(data))
        .join(''),
    );
  }

  /** Who has not asked for the chunk with the usage, as OpenAI's clients must, may look into the choice of every chunk. */
  private get lastChoices(): readonly object[] {
    const streamOptions = this.body.stream_options as { readonly include_usage?: unknown } | null | undefined;
    return streamOptions?.include_usage === true ? [] : [{ index: 0, delta: {}, finish_reason: null }];
  }
}

const identity: TranslateChunk = (chunk) => chunk;

function toErrorChunk(error: object) {
  return { error, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] };
}
