/** What an encrypted chat may use while it passes, and more money before that is more than is held. */
import { setTimeout as delay } from 'node:timers/promises';
import { getQuantity } from '#domain';
import { money, type PicoUsd, toPicoUsd } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { EncryptedChunk } from '../../providers/private-calls.ts';
import { calculateMaxCallPrice, countAffordableOutputTokens } from '../chat/chat-quote.ts';
import type { CiphertextUsageLimits, ClampedUsage } from './ciphertext-usage.ts';
import type { PrivateOrder } from './private-order.ts';

/** How long a chat stands still that waits for what other requests hold, and how often it asks. */
const MAX_EXTENSION_WAIT_MS = 5_000;
const EXTENSION_RETRY_MS = 100;

export class CiphertextMeter {
  /** What kept the request from being read to its end. */
  requestError: unknown;

  constructor(
    private readonly purchase: Purchase,
    private readonly usageLimits: CiphertextUsageLimits,
    private readonly order: Pick<PrivateOrder, 'endpoint' | 'isMetered'>,
  ) {}

  /** The request, as far as it is held for. @throws UpstreamError */
  async *meterRequest(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await chunks.next().catch((error: unknown) => {
        this.requestError = error;
        throw new UpstreamError('invalid_request', 'The request broke off', { cause: error });
      });
      if (done) return;
      this.usageLimits.recordSent(value.length);
      await this.ensureHeld();
      yield value;
    }
  }

  /**
   * Resolves when a piece of the answer is held for. One that comes whole, as was said before, was held for before it was asked.
   * @throws UpstreamError `hold_used_up` when there is no more
   */
  meterChunk({ frameSizes, missingBytes }: EncryptedChunk, isStream: boolean): Promise<void> | undefined {
    this.usageLimits.recordReceived(frameSizes, isStream, missingBytes);
    return isStream || this.order.isMetered ? this.ensureHeld() : undefined;
  }

  /**
   * What of a usage is paid for. What an enclave reports beyond what its bytes were held for is taken if it is there; what is not
   * there is not charged, and not owed.
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

  /** Nothing is waited for where enough is held, which is so for almost all pieces. */
  private ensureHeld(): Promise<void> | undefined {
    return this.requiredAmount > this.purchase.hold.amount ? this.extendHold() : undefined;
  }

  /** Twice what is due is asked for, so that a long answer asks seldom. */
  private async extendHold(): Promise<void> {
    const { purchase } = this;
    for (let waited = 0; this.requiredAmount > purchase.hold.amount; ) {
      const { requiredAmount } = this;
      if (requiredAmount > purchase.order.maxPrice)
        throw new UpstreamError('answer_too_long', 'The answer is too long');
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
