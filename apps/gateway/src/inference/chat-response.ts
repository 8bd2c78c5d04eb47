/** Chat completions, non-streaming and streamed, in OpenAI's format with the additions of OpenRouter. */
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
import { type JsonObject, toUsdJsonNumber } from '#kernel';
import { selectErrorFormat } from '../edge/errors/error-formats.ts';
import { INTERNAL_ERROR, toErrorResponse } from '../edge/errors/errors.ts';
import { SseWriter } from '../edge/responses/sse-writer.ts';

/** Returns the usage with its cost. As in OpenAI's API, the totals include the tokens of the details. */
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
    // OpenRouter's strict clients require the costs of the prompt and of the completions.
    cost_details: toCostDetails(receipt, 'completions'),
  };
}

/** Adds the fields that strict clients require and that not every provider sends. */
export function toChatCompletion(body: JsonObject, receipt: Receipt) {
  const { choices, system_fingerprint = null } = body;
  return {
    ...body,
    choices: (choices as readonly JsonObject[]).map(toChoiceJson),
    system_fingerprint,
    usage: toUsageJson(receipt),
  };
}

function toChoiceJson({ message, native_finish_reason = null, ...choice }: JsonObject) {
  return { ...choice, native_finish_reason, message: { reasoning: null, ...(message as JsonObject) } };
}

/** Writes a streamed chat completion. Once the response has started, an error can only be sent as an event. */
export class ChatStreamWriter extends SseWriter implements CompletionWriter {
  /** Creation time of every chunk, in Unix seconds. */
  readonly created = Math.floor(Date.now() / 1000);
  private model: string;

  /**
   * @param body the request, which decides whether the last chunk has an empty choice or none
   * @param translate converts each chunk for a client of an older format
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

  /**
   * OpenAI sends a chunk without choices only if the request has `include_usage`. Clients that did not set this
   * option may read the first choice of every chunk.
   */
  private get lastChoices(): readonly object[] {
    const streamOptions = this.body.stream_options as { readonly include_usage?: unknown } | null | undefined;
    return streamOptions?.include_usage === true ? [] : [{ index: 0, delta: {}, finish_reason: null }];
  }
}

const identity: TranslateChunk = (chunk) => chunk;

function toErrorChunk(error: object) {
  return { error, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] };
}
