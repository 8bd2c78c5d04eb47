/** Chat completions, non-streaming and streamed, in OpenAI's format with the additions of OpenRouter. */
import type { FastifyReply } from 'fastify';
import {
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

/** The standard tier in the format of OpenAI. Every provider gets its own name of it, and may report that. */
const SERVICE_TIER = 'default';

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
    service_tier: SERVICE_TIER,
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

  /**
   * @param model the model of the request, until the source of the completion is known
   * @param translate converts each chunk for a client of an older format
   */
  constructor(
    reply: FastifyReply,
    private model: string,
    private readonly translate?: TranslateChunk,
  ) {
    super(reply);
  }

  override begin(source?: CompletionSource): void {
    this.model = source?.model ?? this.model;
    super.begin();
  }

  override write(events: Uint8Array): Promise<void> | undefined {
    return super.write(this.translate ? translateEvents(events, this.translate) : events);
  }

  /** Sends the usage and `[DONE]`, or the failure as the last chunk of a response without an end. */
  end(receipt: Receipt | undefined, failure?: unknown): void {
    const { requestId, created, model } = this;
    const head = { id: `gen-${requestId}`, object: 'chat.completion.chunk', created, model };
    const usage = receipt ? { usage: toUsageJson(receipt) } : {};
    if (failure) this.finishIncomplete(this.formatChunk({ ...this.createErrorChunk(failure, head), ...usage }));
    else
      this.finish(
        (receipt ? this.formatChunk({ ...head, choices: [], service_tier: SERVICE_TIER, ...usage }) : '') +
          formatSseEvent(SSE_DONE),
      );
  }

  /** The error comes first, because some clients check only there. OpenRouter's clients require the choice. */
  private createErrorChunk(failure: unknown, head: object): object {
    const error = selectErrorFormat(this.request).createEvent(toErrorResponse(failure) ?? INTERNAL_ERROR);
    return { error, ...head, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] };
  }

  private formatChunk(chunk: JsonObject): string {
    return formatSseEvent(JSON.stringify(this.translate ? this.translate(chunk) : chunk));
  }
}
