/**
 * Extends the hold of an encrypted chat during the relay, before data that the hold does not cover is sent. The enclave is
 * stopped within `MAX_UNCOVERED_MS` after the last usage that the hold covered.
 */
import { calculateMaxPrice, getQuantity, type Usage } from '#domain';
import { money, type PicoUsd } from '#kernel';
import {
  EXTENSION_RETRY_MS,
  extendUntilCovered,
  MAX_COMPLETE_WAIT_MS,
  MAX_UNCOVERED_MS,
} from '../../billing/extend-until-covered.ts';
import type { Purchase } from '../../billing/purchase.ts';
import { UpstreamError } from '../../errors.ts';
import type { EncryptedChunk } from '../../providers/private-calls.ts';
import { getTypicalSpeed, MIN_SPEED_TOKENS } from '../../routing/endpoint-health.ts';
import { calculateMaxCallPrice, calculateStopPrice, countAffordableOutputTokens } from '../chat/chat-quote.ts';
import { MIN_SPEED_MS, OutputDuration } from '../chat-execution/output-duration.ts';
import { UncountedUsage } from '../chat-execution/uncounted-usage.ts';
import type { CiphertextUsageLimits, ClampedUsage } from './ciphertext-usage.ts';
import type { PrivateOrder } from './private-order.ts';

export class CiphertextMeter {
  /** The error that interrupted the request body, if any. */
  requestError: unknown;
  private readonly uncounted: UncountedUsage;
  /** When the hold last covered the usage. */
  private coveredAtMs: number;
  /** For how long nothing had been read when the money was used up. */
  private unreadMs = 0;
  /** The enclave is generating a stream, so stopping it saves cost. */
  private isStreaming = false;
  private pendingExtension: Promise<void> | undefined;
  private readonly duration: OutputDuration;
  private isStatingSpeed = false;
  private hasRecordedSpeed = false;
  private wasSlowed = false;

  constructor(
    private readonly purchase: Purchase,
    private readonly usageLimits: CiphertextUsageLimits,
    private readonly order: Pick<PrivateOrder, 'endpoint' | 'isMetered' | 'overhead'>,
  ) {
    const { runtime } = purchase;
    this.coveredAtMs = runtime.now();
    this.duration = new OutputDuration(runtime);
    const limits = {
      tokensPerSecond: getTypicalSpeed(order.endpoint.tokensPerSecond),
      maxReasoningTokens: 0, // an enclave sends its reasoning
      maxOutputTokens: Number.POSITIVE_INFINITY,
      graceMs: 0,
    };
    this.uncounted = new UncountedUsage(limits, runtime);
  }

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

  /** Records that the client is full, so that nothing is read. */
  markFull(whenDrained: Promise<void>): void {
    this.wasSlowed = true;
    this.uncounted.markFull(whenDrained);
  }

  /** Whether the duration of the response shows the speed of the enclave, and that is not recorded yet. */
  get isSpeedNew(): boolean {
    return !this.wasSlowed && !this.hasRecordedSpeed;
  }

  /**
   * Until the work that forwards a stream has ended, holds money for what the enclave may generate while nothing is read.
   * @throws UpstreamError as `meterChunk`; any error of the work
   */
  async monitor(work: Promise<void>): Promise<void> {
    this.isStreaming = true;
    this.uncounted.skipTime();
    try {
      await Promise.race([work, this.checkUncounted().then(() => work)]);
    } finally {
      this.isStreaming = false;
    }
  }

  /** Adds to an estimate what was probably generated but not read when the money was used up. */
  addUnread({ usage, estimated }: ClampedUsage): Usage {
    if (!estimated) return usage;
    const { maxOutput } = this;
    const unread = Math.ceil(this.uncounted.getTypicalTokens(maxOutput, this.unreadMs) - maxOutput);
    const output = getQuantity('output', usage);
    return { ...usage, output: Math.max(Math.min(output + unread, this.order.overhead.context), output) };
  }

  /**
   * Returns how many output tokens of a usage the hold covers. If the usage costs more than is held, the hold is first
   * extended, if possible. The payer does not owe output that still exceeds the hold.
   */
  async countCovered(usage: Usage): Promise<number> {
    const { purchase, order } = this;
    const { tariff } = order.endpoint;
    const [input, output] = [getQuantity('input', usage), getQuantity('output', usage)];
    await purchase.extendHoldToPrice(calculateMaxCallPrice(input, output, tariff));
    return Math.max(countAffordableOutputTokens(purchase.hold.amount, input, tariff), 0);
  }

  /** Upper bound of the output tokens in the data that was read. */
  private get maxOutput(): number {
    return this.usageLimits.maxUsage.output;
  }

  private get requiredAmount(): PicoUsd {
    const { input, output } = this.usageLimits.maxUsage;
    return calculateMaxCallPrice(input, Math.ceil(this.uncounted.getMaxTokens(output)), this.order.endpoint.tariff);
  }

  private async checkUncounted(): Promise<void> {
    const { uncounted, purchase } = this;
    for (;;) {
      await purchase.runtime.sleep(EXTENSION_RETRY_MS, { isBackground: true });
      if (!this.isStreaming || purchase.signal.aborted) return;
      uncounted.recordTime(0);
      if (uncounted.needsCount) uncounted.setBacklog(this.maxOutput);
      this.stateSpeed();
      await this.ensureHeld();
    }
  }

  /**
   * States the speed with the hold, and records it, if it was unknown. The gateway cannot limit the output of an
   * encrypted chat, so other requests of the payer would wait for the end of this one until its speed is known. A
   * failure is ignored: the hold still covers the usage.
   */
  private stateSpeed(): void {
    const { purchase, maxOutput } = this;
    const { endpoint, overhead } = this.order;
    const { amount, limitPrice, stopPrice } = purchase.hold;
    const elapsedMs = this.duration.measure(maxOutput);
    if (limitPrice === undefined || stopPrice !== undefined || this.isStatingSpeed || this.wasSlowed) return;
    if (elapsedMs < MIN_SPEED_MS || maxOutput < MIN_SPEED_TOKENS) return;
    // Without `eventTokens`, the maximum output is far above the tokens.
    if (overhead.eventTokens !== undefined && !this.hasRecordedSpeed) {
      purchase.recordDelivery(endpoint, maxOutput, elapsedMs);
      this.hasRecordedSpeed = true;
    }
    const tokensPerSecond = (maxOutput * 1_000) / elapsedMs;
    const targetAmount = money.add(amount, calculateMaxPrice({ output: 1 }, endpoint.tariff.prices));
    const measured = { endpoints: [endpoint], choices: 1 };
    const newStopPrice = calculateStopPrice(measured, MAX_UNCOVERED_MS, () => tokensPerSecond);
    this.isStatingSpeed = true;
    const markStated = () => {
      this.isStatingSpeed = false;
    };
    purchase
      .extendHold({ minAmount: targetAmount, targetAmount, stopPrice: newStopPrice })
      .then(markStated, markStated); // the payer reports a failure
  }

  /** Returns undefined if the hold is sufficient, so that most chunks are relayed without waiting. */
  private ensureHeld(): Promise<void> | undefined {
    if (this.requiredAmount > this.purchase.hold.amount) return this.extendHold();
    this.coveredAtMs = this.purchase.runtime.now();
    return undefined;
  }

  private extendHold(): Promise<void> {
    this.pendingExtension ??= this.waitUntilHeld().finally(() => {
      this.pendingExtension = undefined;
    });
    return this.pendingExtension;
  }

  /** Requests twice the required amount, so that a long response needs few extensions. */
  private async waitUntilHeld(): Promise<void> {
    const { purchase } = this;
    const { runtime: timers, signal } = purchase;
    const startedAtMs = timers.now();
    const isHeld = await extendUntilCovered({
      isCovered: () => this.requiredAmount <= purchase.hold.amount,
      extend: async () => {
        const { requiredAmount } = this;
        if (requiredAmount > purchase.order.maxPrice)
          throw new UpstreamError('answer_too_long', 'The response is too long');
        const targetAmount = money.add(requiredAmount, requiredAmount);
        return purchase.extendHold({ minAmount: requiredAmount, targetAmount });
      },
      getDeadlineMs: () =>
        this.isStreaming ? this.coveredAtMs + MAX_UNCOVERED_MS : startedAtMs + MAX_COMPLETE_WAIT_MS,
      signal,
      timers,
    }).finally(() => {
      this.wasSlowed = true; // nothing was read in the meantime
      this.unreadMs = timers.now() - startedAtMs;
    });
    if (!isHeld) throw new UpstreamError('hold_used_up', 'Insufficient balance for the rest of a private chat');
    this.unreadMs = 0;
    this.coveredAtMs = timers.now();
  }
}
