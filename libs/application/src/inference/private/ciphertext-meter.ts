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
const WAITS_MS = 5_000;
const ASKS_AGAIN_MS = 100;

export class CiphertextMeter {
  /** What kept the request from being read to its end. */
  fault: unknown;

  constructor(
    private readonly purchase: Purchase,
    private readonly usage: CiphertextUsageLimits,
    private readonly order: Pick<PrivateOrder, 'endpoint' | 'isMetered'>,
  ) {}

  /** The request, as far as it is held for. @throws UpstreamError */
  async *sent(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const pieces = body[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await pieces.next().catch((error: unknown) => {
        this.fault = error;
        throw new UpstreamError('invalid_request', 'The request broke off', { cause: error });
      });
      if (done) return;
      this.usage.send(value.length);
      await this.covered();
      yield value;
    }
  }

  /**
   * Resolves when a piece of the answer is held for. One that comes whole, as was said before, was held for before it was asked.
   * @throws UpstreamError `hold_used_up` when there is no more
   */
  received({ frames, missing }: EncryptedChunk, isStream: boolean): Promise<void> | undefined {
    this.usage.receive(frames, isStream, missing);
    return isStream || this.order.isMetered ? this.covered() : undefined;
  }

  /**
   * What of a usage is paid for. What an enclave reports beyond what its bytes were held for is taken if it is there; what is not
   * there is not charged, and not owed.
   */
  async afforded({ usage, estimated }: ClampedUsage): Promise<Pick<ClampedUsage, 'usage' | 'estimated'>> {
    const { purchase, order } = this;
    const { endpoint } = order;
    const [input, output] = [getQuantity('input', usage), getQuantity('output', usage)];
    const price = calculateMaxCallPrice(input, output, endpoint.tariff);
    const { amount } = purchase.hold;
    if (price > amount) await purchase.grow({ minAmount: toPicoUsd(amount + 1n), targetAmount: price }).catch(() => {});
    const most = Math.max(countAffordableOutputTokens(purchase.hold.amount, input, endpoint.tariff), 0);
    return output <= most ? { usage, estimated } : { usage: { input, output: most }, estimated: true };
  }

  private get due(): PicoUsd {
    const { input, output } = this.usage.most;
    return calculateMaxCallPrice(input, output, this.order.endpoint.tariff);
  }

  /** Nothing is waited for where enough is held, which is so for almost all pieces. */
  private covered(): Promise<void> | undefined {
    return this.due > this.purchase.hold.amount ? this.held() : undefined;
  }

  /** Twice what is due is asked for, so that a long answer asks seldom. */
  private async held(): Promise<void> {
    const { purchase } = this;
    for (let waited = 0; this.due > purchase.hold.amount; ) {
      const { due } = this;
      if (due > purchase.sale.atMost) throw new UpstreamError('answer_too_long', 'The answer is too long');
      const grown = await purchase.grow({ minAmount: due, targetAmount: money.add(due, due) });
      if (grown === 'grown') continue;
      if (grown === 'no more' || waited >= WAITS_MS) throw usedUp();
      await delay(ASKS_AGAIN_MS, undefined, { signal: purchase.signal }).catch(() => {
        throw toUpstreamError(purchase.signal.reason);
      });
      waited += ASKS_AGAIN_MS;
    }
  }
}

function usedUp(): UpstreamError {
  return new UpstreamError('hold_used_up', 'Insufficient balance for the rest of a private chat');
}
