/** Extends the hold of an encrypted chat during the relay, before data that the hold does not cover is sent. */
import { setTimeout as delay } from 'node:timers/promises';
import { getQuantity } from '#domain';
import { money, type PicoUsd, toPicoUsd } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { EncryptedChunk } from '../../providers/private-calls.ts';
import { calculateMaxCallPrice, countAffordableOutputTokens } from '../chat/chat-quote.ts';
import type { CiphertextUsageLimits, ClampedUsage } from './ciphertext-usage.ts';
import type { PrivateOrder } from './private-order.ts';

/** Maximum time for which a chat pauses for money that other requests hold. */
const MAX_EXTENSION_WAIT_MS = 5_000;
/** Time between two attempts to extend the hold during such a pause. */
const EXTENSION_RETRY_MS = 100;

export class CiphertextMeter {
  /** The error that interrupted the request body, if any. */
  requestError: unknown;

  constructor(
    private readonly purchase: Purchase,
    private readonly usageLimits: CiphertextUsageLimits,
    private readonly order: Pick<PrivateOrder, 'endpoint' | 'isMetered'>,
  ) {}

  /**
   * Yields each chunk of the request body once the hold covers it.
   * @throws UpstreamError if the body ends early or the hold cannot be extended
   */
  async *meterRequest(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await chunks.next().catch((error: unknown) => {
        this.requestError = error;
        throw new UpstreamError('invalid_request', 'The request body ended early', { cause: error });
      });
      if (done) return;
      this.usageLimits.recordSent(value.length);
      await this.ensureHeld();
      yield value;
    }
  }

  /**
   * Resolves when the hold covers a chunk of the response. For an order that is not metered, money for the longest
   * non-streaming response is already held.
   * @returns undefined if the chunk need not wait
   * @throws UpstreamError `hold_used_up` if the payer cannot pay for more, `answer_too_long` beyond the maximum price,
   *   `hold_ended`, or the reason of an abort during the wait
   */
  meterChunk({ frameSizes, missingBytes }: EncryptedChunk, isStream: boolean): Promise<void> | undefined {
    this.usageLimits.recordReceived(frameSizes, isStream, missingBytes);
    return isStream || this.order.isMetered ? this.ensureHeld() : undefined;
  }

  /**
   * Reduces the output of a usage to what the hold covers. If the usage costs more than is held, the hold is first
   * extended, if possible. The payer does not owe output that still exceeds the hold.
   */
  async limitToHold({ usage, estimated }: ClampedUsage): Promise<Pick<ClampedUsage, 'usage' | 'estimated'>> {
    const { purchase, order } = this;
    const { endpoint } = order;
    const [input, output] = [getQuantity('input', usage), getQuantity('output', usage)];
    const price = calculateMaxCallPrice(input, output, endpoint.tariff);
    const { amount } = purchase.hold;
    if (price > amount)
      await purchase.extendHold({ minAmount: toPicoUsd(amount + 1n), targetAmount: price }).catch(() => {});
    const maxOutput = Math.max(countAffordableOutputTokens(purchase.hold.amount, input, endpoint.tariff), 0);
    return output <= maxOutput ? { usage, estimated } : { usage: { input, output: maxOutput }, estimated: true };
  }

  private get requiredAmount(): PicoUsd {
    const { input, output } = this.usageLimits.maxUsage;
    return calculateMaxCallPrice(input, output, this.order.endpoint.tariff);
  }

  /** Returns undefined if the hold is sufficient, so that most chunks are relayed without waiting. */
  private ensureHeld(): Promise<void> | undefined {
    return this.requiredAmount > this.purchase.hold.amount ? this.extendHold() : undefined;
  }

  /** Requests twice the required amount, so that a long response needs few extensions. */
  private async extendHold(): Promise<void> {
    const { purchase } = this;
    for (let waited = 0; this.requiredAmount > purchase.hold.amount; ) {
      const { requiredAmount } = this;
      if (requiredAmount > purchase.order.maxPrice)
        throw new UpstreamError('answer_too_long', 'The response is too long');
      const outcome = await purchase.extendHold({
        minAmount: requiredAmount,
        targetAmount: money.add(requiredAmount, requiredAmount),
      });
      if (outcome === 'extended') continue;
      if (outcome === 'exhausted' || waited >= MAX_EXTENSION_WAIT_MS) throw createHoldUsedUpError();
      await delay(EXTENSION_RETRY_MS, undefined, { signal: purchase.signal }).catch(() => {
        throw toUpstreamError(purchase.signal.reason);
      });
      waited += EXTENSION_RETRY_MS;
    }
  }
}

function createHoldUsedUpError(): UpstreamError {
  return new UpstreamError('hold_used_up', 'Insufficient balance for the rest of a private chat');
}
