/** How the answer to a chat is written, whole or as a stream: in OpenAI's shapes, with the additions that OpenRouter's clients expect. */
import { type AnswerClient, DONE, type Receipt, type Source, sseEvent } from '#application';
import { quantityOf } from '#domain';
import { money, usdNumber } from '#kernel';
import { shapeFor } from '../edge/error-shapes.ts';
import { answerTo, UNEXPECTED } from '../edge/errors.ts';
import { SseClient } from '../edge/sse.ts';

/** Usage with its cost: tokens are given as OpenAI counts them, where the parts are contained in the sums. */
function usageWire({ usage, charged, chargedForInput }: Receipt) {
  const prompt = quantityOf('input', usage);
  const generated = quantityOf('output', usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: generated,
    total_tokens: prompt + generated,
    cost: usdNumber(charged),
    prompt_tokens_details: {
      cached_tokens: quantityOf('cacheRead', usage),
      cache_write_tokens: quantityOf('cacheWrite', usage),
    },
    completion_tokens_details: { reasoning_tokens: quantityOf('reasoning', usage) },
    // OpenRouter's strict clients refuse usage without the two parts.
    cost_details: {
      upstream_inference_cost: null,
      upstream_inference_prompt_cost: usdNumber(chargedForInput),
      upstream_inference_completions_cost: usdNumber(money.subtract(charged, chargedForInput)),
    },
  };
}

export function completion(body: Readonly<Record<string, unknown>>, receipt: Receipt): object {
  return { ...body, system_fingerprint: body.system_fingerprint ?? null, usage: usageWire(receipt) };
}

/** A client of a chat. Once events have been sent, an error can only be another event. */
export class ChatStream extends SseClient implements AnswerClient {
  private model = '';

  override begin(source?: Source): void {
    this.model = source?.model ?? '';
    super.begin();
  }

  end(receipt: Receipt | undefined, failure?: unknown): void {
    const error = failure ? shapeFor(this.request).inEvent(answerTo(failure) ?? UNEXPECTED) : undefined;
    this.finish(endOfStream({ id: `gen-${this.requestId}`, model: this.model }, receipt, error));
  }
}

interface Identity {
  readonly id: string;
  readonly model: string;
}

/** The last events of a stream: why it broke off, if it did, and the usage, if it could be charged; and the end marker. */
function endOfStream({ id, model }: Identity, receipt: Receipt | undefined, error: object | undefined): string {
  const chunk = { id, object: 'chat.completion.chunk', created: Math.floor(Date.now() / 1000), model };
  const usage = receipt ? [{ ...chunk, choices: [], usage: usageWire(receipt) }] : [];
  const events = error ? [{ ...chunk, ...brokenOff(error) }, ...usage] : usage;
  return [...events.map((event) => JSON.stringify(event)), DONE].map((data) => sseEvent(data)).join('');
}

function brokenOff(error: object) {
  return { error, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] };
}
