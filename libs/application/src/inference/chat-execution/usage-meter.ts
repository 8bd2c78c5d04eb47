/**
 * Meters the usage of a completion while it streams, and extends its hold before the hold is used up. Phone networks
 * control the credit of a call in the same way (RFC 8506): they grant it in portions during the call. Only events that
 * the hold covers are forwarded to the client. A completion whose hold no longer covers it is stopped within
 * `MAX_UNCOVERED_MS`.
 */
import type { Endpoint } from '#catalogue';
import type { Timers } from '#kernel';
import {
  EXTENSION_RETRY_MS,
  type ExtensionOutcome,
  extendUntilCovered,
  MAX_COMPLETE_WAIT_MS,
  MAX_UNCOVERED_MS,
} from '../../billing/extend-until-covered.ts';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { SseEventSink } from '../../providers/provider.ts';
import { getTypicalSpeed } from '../../routing/endpoint-health.ts';
import type { CountText } from '../../tokens/token-counter.ts';
import { type ChatQuote } from '../chat/chat-quote.ts';
import { selectCoveredEvents } from './covered-events.ts';
import { MIN_SPEED_MS, OutputDuration } from './output-duration.ts';
import type { OutputLengthStats } from './output-length-stats.ts';
import { type GeneratedText, TextCount } from './text-count.ts';
import { TokenHold } from './token-hold.ts';
import { UncountedUsage } from './uncounted-usage.ts';

/**
 * The hold is extended when it covers only this many further tokens. An earlier extension would often take money from
 * other requests for a completion that is about to end. If the hold is used up before its extension is stored, the
 * completion pauses until then, usually for milliseconds.
 */
const EXTENSION_LEAD_TOKENS = 8;
/** The speed of a completion is known once it has at least this many bytes of text, and see `MIN_SPEED_MS`. */
const MIN_SPEED_BYTES = 256;

export interface MeterParams {
  readonly purchase: Purchase;
  readonly quote: ChatQuote;
  readonly endpoint: Endpoint;
  readonly lengths: OutputLengthStats;
  /** Of one choice. */
  readonly tokensPerSecond: number | undefined;
  /** Hidden reasoning tokens of one choice at most; infinite if only the output limit limits them. */
  readonly maxReasoningTokens: number;
  /** The output limit of one choice as it was sent to the provider. */
  readonly maxOutputTokens: number;
  /** Usual time to the first byte without reasoning. */
  readonly latencyMs: number;
  readonly countText: CountText;
}

export class UsageMeter {
  /** Why the completion was ended for lack of money: `hold_used_up` or `hold_ended`; undefined if it was not. */
  endedBy: UpstreamError | undefined;
  private readonly hold: TokenHold;
  private readonly text: TextCount;
  private readonly uncounted: UncountedUsage;
  /** When the hold last covered the usage. */
  private coveredAtMs: number;
  private readonly duration: OutputDuration;
  private wasFull = false;
  private checkedAtMs: number;
  private pendingCheck: Promise<boolean> | undefined;
  private pendingExtension: Promise<unknown> | undefined;
  /** Usage at which the last extension in advance failed; -1 if it succeeded, or if there was none. */
  private rejectedAtTokens = -1;
  private pendingForward: Promise<void> | undefined;
  private isStopped = false;
  /** The provider has ended the completion, or was disconnected. */
  private isEnded = false;
  private tokensAtStop = 0;
  private readonly ratio: number;
  private readonly maxOutputTokens: number;
  private readonly timers: Timers;

  /** Starts metering: the request is about to be sent. */
  constructor(private readonly params: MeterParams) {
    const { lengths, purchase, quote, tokensPerSecond, maxReasoningTokens, maxOutputTokens } = params;
    const { choices } = quote;
    this.timers = purchase.runtime;
    this.coveredAtMs = this.timers.now();
    this.checkedAtMs = this.coveredAtMs;
    this.duration = new OutputDuration(this.timers);
    this.ratio = lengths.getRatio(purchase.model.id);
    this.maxOutputTokens = maxOutputTokens * choices;
    const limits = {
      tokensPerSecond: getTypicalSpeed(tokensPerSecond) * choices,
      maxReasoningTokens: maxReasoningTokens * choices,
      maxOutputTokens: this.maxOutputTokens,
      graceMs: params.latencyMs,
    };
    this.uncounted = new UncountedUsage(limits, this.timers);
    this.text = new TextCount(params.countText);
    this.hold = new TokenHold(params);
    void this.monitor();
  }

  /** Meters a completion that has started to arrive. */
  setCompletion(completion: GeneratedText): void {
    this.text.setSource(completion);
  }

  /**
   * Wraps a sink so that it receives only events that the hold covers. The completion is aborted when the hold is used
   * up and cannot be extended.
   */
  wrapSink(sink: SseEventSink): SseEventSink {
    const send: SseEventSink = (events, search) => {
      const whenDrained = sink(events, search);
      if (whenDrained) this.markFull(whenDrained);
      return whenDrained;
    };
    return (events, search) => {
      const pendingCheck = this.pendingForward
        ? this.pendingForward.then(() => this.checkHold() ?? true)
        : this.checkHold();
      if (!pendingCheck) return send(events, search);
      return this.trackForward(
        pendingCheck.then((isCovered) =>
          this.forwardOrStop(isCovered, async () =>
            send(isCovered ? events : await this.selectCovered(events), search),
          ),
        ),
      );
    };
  }

  /** From now on the speed of the output does not show that of the provider. */
  private markFull(whenDrained: Promise<void>): void {
    this.wasFull = true;
    this.uncounted.markFull(whenDrained);
  }

  /** Stops metering. Resolves when no received event waits to be forwarded and no extension is running. */
  async finish(): Promise<void> {
    this.isEnded = true;
    await this.pendingForward;
    await this.pendingCheck;
    await this.pendingExtension;
  }

  /** Output tokens that the hold pays for. */
  get coveredTokens(): number {
    return Math.max(this.hold.tokens, 0);
  }

  /** Returns an estimate of the output tokens that were generated until the provider was disconnected. */
  async estimateGenerated(): Promise<number> {
    await this.text.update();
    const tokens = Math.max(this.uncounted.getTypicalTokens(this.text.tokens * this.ratio), this.tokensAtStop);
    return Math.ceil(Math.min(tokens, this.maxOutputTokens));
  }

  /**
   * Extends the hold to what was generated until the provider was disconnected. The payer owes that too, and other
   * requests of the payer leave money for it.
   */
  extendToGenerated(tokens: number): Promise<void> {
    return this.hold.extendFinally(tokens);
  }

  /**
   * Records the ratio of the billed output to the gateway's count, if this meter has counted tokens.
   * @param visible billed output tokens without reasoning
   */
  async recordRatio(visible: number): Promise<void> {
    if (this.text.tokens === 0) return;
    await this.text.update();
    this.params.lengths.recordRatio(this.params.purchase.model.id, this.text.tokens, visible);
  }

  private trackForward(forwarding: Promise<void>): Promise<void> {
    this.pendingForward = forwarding;
    void forwarding.then(() => {
      if (this.pendingForward === forwarding) this.pendingForward = undefined;
    });
    return forwarding;
  }

  /** Stops the provider before the last events are sent, because the receiver may be full. */
  private async forwardOrStop(isCovered: boolean, forward: () => Promise<void>): Promise<void> {
    if (this.isStopped) return;
    if (!isCovered) this.runOut();
    await forward().catch((error) => this.stop(toUpstreamError(error)));
  }

  /** Called after a check. */
  private runOut(): void {
    const failure = new UpstreamError('hold_used_up', 'The money held for the response is used up');
    this.stop(failure, this.timers.now() - this.checkedAtMs);
  }

  /** @param unreadMs for how long nothing was read before, although the provider may have generated output */
  private stop(failure: UpstreamError, unreadMs = 0): void {
    if (this.isStopped) return;
    this.isStopped = true;
    if (failure.code === 'hold_used_up' || failure.code === 'hold_ended') this.endedBy = failure;
    this.tokensAtStop = this.uncounted.getTypicalTokens(this.text.tokens * this.ratio, unreadMs);
    this.params.purchase.abort(failure);
  }

  /** Checks the usage regularly while it may grow although nothing is read. */
  private async monitor(): Promise<void> {
    while (!this.isOver) {
      await this.timers.sleep(EXTENSION_RETRY_MS, { isBackground: true });
      if (!this.isOver) this.checkUncounted();
    }
  }

  private get isOver(): boolean {
    return this.isStopped || this.isEnded || this.hold.isComplete || this.params.purchase.signal.aborted;
  }

  /**
   * States the speed with the hold, if it was unknown. The provider can then bill less than the output limit before it
   * is stopped, and other requests need not wait for the end of this one. Every token has at least one byte, so the
   * speed in bytes is an upper bound, far above the speed in tokens. A failure is ignored: the hold still covers the
   * usage.
   */
  private stateSpeed(): void {
    const { bytes } = this.text;
    const elapsedMs = this.duration.measure(bytes);
    if (
      this.hold.isSpeedKnown ||
      this.wasFull ||
      this.pendingExtension ||
      elapsedMs < MIN_SPEED_MS ||
      bytes < MIN_SPEED_BYTES
    )
      return;
    this.trackExtension(this.hold.stateSpeed((bytes * 1_000) / elapsedMs)).catch(() => {}); // reported by the payer
  }

  private checkUncounted(): void {
    const { uncounted } = this;
    this.stateSpeed();
    if (this.pendingCheck) return;
    uncounted.recordTime(this.text.bytes);
    if (!uncounted.needsCount && this.maxUsedTokens < this.extensionThreshold) {
      this.coveredAtMs = this.timers.now();
      return;
    }
    void this.startCheck(() => this.isEnded).then((isCovered) => {
      if (!isCovered && !this.isEnded) this.runOut();
    });
  }

  /**
   * Counts what was generated and extends the hold, if the upper bound of the usage makes that necessary.
   * @returns undefined if the hold covers the upper bound, else a promise of whether the hold covers the usage, perhaps
   *   after an extension; a promise of false once the completion was stopped
   */
  private checkHold(): Promise<boolean> | undefined {
    if (this.isStopped) return Promise.resolve(false);
    if (this.maxUsedTokens < this.extensionThreshold) return undefined;
    return this.pendingCheck ? this.pendingCheck.then(() => this.checkHold() ?? true) : this.startCheck(() => false);
  }

  /** @param isMoot whether the usage need not be covered any more */
  private startCheck(isMoot: () => boolean): Promise<boolean> {
    this.checkedAtMs = this.timers.now();
    this.pendingCheck = this.checkCountedUsage(isMoot)
      .catch((error) => {
        this.stop(toUpstreamError(error), this.timers.now() - this.checkedAtMs);
        return false;
      })
      .finally(() => {
        this.pendingCheck = undefined;
        this.uncounted.skipTime(); // the completion may have been paused by this check
      });
    return this.pendingCheck;
  }

  private async checkCountedUsage(isMoot: () => boolean): Promise<boolean> {
    await this.text.update();
    this.uncounted.setBacklog(this.text.tokens * this.ratio);
    const isCovered = this.usedTokens <= this.hold.tokens || (await this.waitUntilCovered(isMoot));
    if (!isCovered) return false;
    this.coveredAtMs = this.timers.now();
    if (this.usedTokens >= this.extensionThreshold) this.extendInAdvance(this.usedTokens);
    return true;
  }

  /** The usage from which the hold is extended; infinite if the maximum price is held. */
  private get extensionThreshold(): number {
    return this.hold.isComplete ? Number.POSITIVE_INFINITY : this.hold.tokens - EXTENSION_LEAD_TOKENS;
  }

  /** Upper bound of the usage. The text since the last count is not counted yet and has at most one token per byte. */
  private get maxUsedTokens(): number {
    return this.uncounted.getMaxTokens(this.text.maxTokens * this.ratio);
  }

  private get usedTokens(): number {
    return Math.ceil(this.uncounted.getMaxTokens(this.text.tokens * this.ratio));
  }

  /**
   * Extends the hold without pausing the completion. After a failed extension, retries when half of the tokens that
   * remained then are used.
   */
  private extendInAdvance(used: number): void {
    if (this.pendingExtension || used < this.rejectedAtTokens + (this.hold.tokens - this.rejectedAtTokens) / 2) return;
    this.extendHold(used)
      .then((outcome) => {
        this.rejectedAtTokens = outcome === 'extended' ? -1 : used;
      })
      .catch((error) => this.stop(toUpstreamError(error)));
  }

  /**
   * Pauses the completion until the hold covers its usage. A completion that has ended waits longer, because its
   * provider bills nothing more.
   * @returns whether the hold covers the usage
   */
  private waitUntilCovered(isMoot: () => boolean): Promise<boolean> {
    return extendUntilCovered({
      isCovered: () => this.usedTokens <= this.hold.tokens || this.hold.isComplete || isMoot(),
      extend: async () => {
        if (!this.pendingExtension) return this.extendHold(this.usedTokens);
        await this.pendingExtension;
        return 'extended'; // perhaps: the usage is compared again
      },
      getDeadlineMs: () =>
        this.isEnded ? this.checkedAtMs + MAX_COMPLETE_WAIT_MS : this.coveredAtMs + MAX_UNCOVERED_MS,
      signal: this.params.purchase.signal,
      timers: this.timers,
    });
  }

  private extendHold(used: number): Promise<ExtensionOutcome> {
    return this.trackExtension(this.hold.extend(used));
  }

  private trackExtension(extending: Promise<ExtensionOutcome>): Promise<ExtensionOutcome> {
    const extension = extending.finally(() => {
      this.pendingExtension = undefined;
    });
    this.pendingExtension = extension.catch(() => {}); // reported to the caller
    return extension;
  }

  /** Returns as many of the first events as the hold covers. The usage already includes all of these events. */
  private selectCovered(events: Uint8Array): Promise<Uint8Array> {
    const countText = async (text: string) => (await this.params.countText(text)) * this.ratio;
    return selectCoveredEvents(events, this.hold.tokens - this.usedTokens, countText);
  }
}
