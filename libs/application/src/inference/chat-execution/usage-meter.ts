/**
 * Meters the usage of a completion while it streams, and extends its hold before the hold is used up. Phone networks
 * control the credit of a call in the same way (RFC 8506): they grant it in portions during the call. Only events that
 * the hold covers are forwarded to the client.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Endpoint } from '#catalogue';
import { money, type PicoUsd } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { CompletionStream, SseEventSink } from '../../providers/provider.ts';
import { getTypicalSpeed } from '../../routing/endpoint-health.ts';
import type { CountText } from '../../tokens/token-counter.ts';
import { formatSseEvent, parseSseEvents } from '../../wire/sse.ts';
import { type ChatQuote, calculateMaxCallPrice, countAffordableOutputTokens } from '../chat/chat-quote.ts';
import type { OutputLengthStats } from './output-length-stats.ts';

/**
 * The hold is extended when it covers only this many further tokens. An earlier extension would often take money from
 * other requests for a completion that is about to end. If the hold is used up before its extension is stored, the
 * completion pauses until then, usually for milliseconds.
 */
const EXTENSION_LEAD_TOKENS = 8;
/** An extension requests money for at least this many tokens beyond the current usage, up to the maximum price. */
const MIN_EXTENSION_TOKENS = 64;
/** Hidden reasoning is assumed to be this many times as fast as the typical output of the endpoint. */
const HIDDEN_SPEED_FACTOR = 2;
/** Maximum time for which a completion pauses for money that other requests hold. */
const MAX_EXTENSION_WAIT_MS = 5_000;
/** Time between two attempts to extend the hold during such a pause. */
const EXTENSION_RETRY_MS = 100;
/** How often hidden usage is estimated until the first output arrives. */
const HIDDEN_CHECK_INTERVAL_MS = 250;

export interface MeterParams {
  readonly purchase: Purchase;
  readonly quote: ChatQuote;
  readonly endpoint: Endpoint;
  readonly lengths: OutputLengthStats;
  readonly tokensPerSecond: number | undefined;
  /** Hidden reasoning tokens that the model may generate at most; infinite if only the output limit limits them. */
  readonly maxReasoningTokens: number;
  readonly countText: CountText;
}

export class UsageMeter {
  /** Output tokens of all choices together that the hold pays for. */
  private heldTokens: number;
  /** Tokens of the complete text at the last count. */
  private countedTokens = 0;
  /** Tokens of the first `countedCharacters` characters, which are not counted again. */
  private tokensBeforeGap = 0;
  private countedCharacters = 0;
  /** The stream's upper bound of tokens at the last count. */
  private maxTokensAtCount = 0;
  /** Estimate of the tokens that the model generated before the first output arrived. */
  private hiddenTokens = 0;
  private readonly startedAtMs = performance.now();
  private pendingExtension: Promise<unknown> | undefined;
  /** Usage at which the last extension in advance failed; -1 if it succeeded, or if there was none. */
  private rejectedAtTokens = -1;
  private pendingForward: Promise<void> | undefined;
  private isStopped = false;
  private hasRunOut = false;
  private readonly ratio: number;
  private readonly tokensPerSecond: number;
  private hiddenCheckTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly params: MeterParams,
    private readonly completion: CompletionStream,
  ) {
    const { lengths, purchase, tokensPerSecond, maxReasoningTokens } = params;
    this.ratio = lengths.getRatio(purchase.order.model.id);
    this.tokensPerSecond = getTypicalSpeed(tokensPerSecond);
    this.heldTokens = this.countAffordableTokens();
    if (maxReasoningTokens > 0)
      this.hiddenCheckTimer = setInterval(() => this.checkHiddenUsage(), HIDDEN_CHECK_INTERVAL_MS).unref();
  }

  /**
   * Wraps a sink so that it receives only events that the hold covers. The completion is aborted when the hold is used
   * up and cannot be extended.
   */
  wrapSink(sink: SseEventSink): SseEventSink {
    return (events, search) => {
      const pendingCheck = this.pendingForward
        ? this.pendingForward.then(() => this.checkHold() ?? true)
        : this.checkHold();
      if (!pendingCheck) return sink(events, search);
      return this.trackForward(
        pendingCheck.then((isCovered) =>
          this.forwardOrStop(isCovered, async () =>
            sink(isCovered ? events : await this.selectCoveredEvents(events), search),
          ),
        ),
      );
    };
  }

  /** Stops metering. Resolves when no received event waits to be forwarded and no extension is running. */
  async finish(): Promise<void> {
    clearInterval(this.hiddenCheckTimer);
    await this.pendingForward;
    await this.pendingExtension;
  }

  /** Whether the hold was used up and could not be extended, so that the completion was ended. */
  get isUsedUp(): boolean {
    return this.hasRunOut;
  }

  /** Output tokens to charge if the hold was used up: the estimated usage, at most what the hold covers. */
  get chargedTokens(): number {
    return Math.min(Math.ceil(this.countedTokens * this.ratio + this.hiddenTokens), this.heldTokens);
  }

  /**
   * Records the ratio of the billed output to the gateway's count, if this meter has counted tokens.
   * @param visible billed output tokens without reasoning
   */
  async recordRatio(visible: number): Promise<void> {
    if (this.countedTokens === 0) return;
    await this.updateCount();
    this.params.lengths.recordRatio(this.params.purchase.order.model.id, this.countedTokens, visible);
  }

  private trackForward(forwarding: Promise<void>): Promise<void> {
    this.pendingForward = forwarding;
    void forwarding.then(() => {
      if (this.pendingForward === forwarding) this.pendingForward = undefined;
    });
    return forwarding;
  }

  private async forwardOrStop(isCovered: boolean, forward: () => Promise<void> | undefined): Promise<void> {
    if (this.isStopped) return;
    try {
      await forward();
    } catch (error) {
      this.stop(toUpstreamError(error));
    }
    if (isCovered || this.isStopped) return;
    this.hasRunOut = true;
    this.stop(new UpstreamError('hold_used_up', 'The money held for the response is used up'));
  }

  private stop(failure: UpstreamError): void {
    this.isStopped = true;
    clearInterval(this.hiddenCheckTimer);
    this.params.purchase.abort(failure);
  }

  /**
   * Counts what was generated and extends the hold, if the upper bound of the usage makes that necessary.
   * @returns undefined if the hold covers the upper bound, else a promise of whether the hold covers the usage, perhaps
   *   after an extension; a promise of false once the completion was stopped
   */
  private checkHold(): Promise<boolean> | undefined {
    if (this.isStopped) return Promise.resolve(false);
    return this.maxUsedTokens < this.extensionThreshold ? undefined : this.checkCountedUsage();
  }

  private async checkCountedUsage(): Promise<boolean> {
    try {
      await this.updateCount();
    } catch (error) {
      this.stop(toUpstreamError(error));
      return false;
    }
    const { usedTokens } = this;
    if (usedTokens > this.heldTokens) return this.extendUntilCovered();
    if (usedTokens >= this.extensionThreshold) this.extendInAdvance(usedTokens);
    return true;
  }

  /** The usage from which the hold is extended; infinite if the maximum price is held. */
  private get extensionThreshold(): number {
    return this.isFullyHeld ? Number.POSITIVE_INFINITY : this.heldTokens - EXTENSION_LEAD_TOKENS;
  }

  /** Whether the maximum price of the request is held. No usage costs more. */
  private get isFullyHeld(): boolean {
    const { hold, order } = this.params.purchase;
    return hold.amount >= order.maxPrice;
  }

  /** Upper bound of the usage. The text since the last count is not counted yet and has at most one token per byte. */
  private get maxUsedTokens(): number {
    return (
      (this.countedTokens + this.completion.getMaxGeneratedTokens() - this.maxTokensAtCount) * this.ratio +
      this.maxHiddenTokens
    );
  }

  private get usedTokens(): number {
    return Math.ceil(this.countedTokens * this.ratio + this.maxHiddenTokens);
  }

  private get maxHiddenTokens(): number {
    return Math.min(this.hiddenTokens * HIDDEN_SPEED_FACTOR, this.params.maxReasoningTokens);
  }

  /** Counts the text up to its last space only once. The rest may end within a token and is counted each time. */
  private async updateCount(): Promise<void> {
    const { countText } = this.params;
    const text = this.completion.getDeliveredText();
    const maxTokens = this.completion.getMaxGeneratedTokens();
    const gap = text.lastIndexOf(' ');
    const end = gap > this.countedCharacters ? gap : this.countedCharacters;
    const [added, rest] = await Promise.all([
      countText(text.slice(this.countedCharacters, end)),
      countText(text.slice(end)),
    ]);
    this.tokensBeforeGap += added;
    this.countedCharacters = end;
    this.countedTokens = this.tokensBeforeGap + rest;
    this.maxTokensAtCount = maxTokens;
  }

  /**
   * Extends the hold without pausing the completion. After a failed extension, retries when half of the tokens that
   * remained then are used.
   */
  private extendInAdvance(used: number): void {
    if (this.pendingExtension || used < this.rejectedAtTokens + (this.heldTokens - this.rejectedAtTokens) / 2) return;
    this.pendingExtension = this.extendHold(used)
      .then((outcome) => {
        this.rejectedAtTokens = outcome === 'extended' ? -1 : used;
      })
      .catch((error) => this.stop(toUpstreamError(error)))
      .finally(() => {
        this.pendingExtension = undefined;
      });
  }

  /**
   * Pauses the completion until the hold covers its usage. Waits a limited time for money that other requests hold,
   * because most of it is released when they end.
   * @returns whether the hold covers the usage
   */
  private async extendUntilCovered(): Promise<boolean> {
    await this.pendingExtension;
    try {
      for (let waited = 0; this.usedTokens > this.heldTokens && !this.isFullyHeld; ) {
        const outcome = await this.extendHold(this.usedTokens);
        if (outcome === 'extended') continue;
        if (outcome === 'exhausted' || waited >= MAX_EXTENSION_WAIT_MS || this.params.purchase.signal.aborted)
          return false;
        await delay(EXTENSION_RETRY_MS);
        waited += EXTENSION_RETRY_MS;
      }
      return true;
    } catch (error) {
      this.stop(toUpstreamError(error));
      return false;
    }
  }

  /**
   * Requests a hold for at least twice as many output tokens as it covers now, within the maximum price. If less is
   * available, one more token is enough.
   */
  private async extendHold(used: number): Promise<'extended' | 'retry_later' | 'exhausted'> {
    const { purchase } = this.params;
    const targetAmount = this.calculatePrice(Math.max(this.heldTokens * 2, used + MIN_EXTENSION_TOKENS));
    const minAmount = money.min(this.calculatePrice(this.heldTokens + 1), purchase.order.maxPrice);
    const outcome = await purchase.extendHold({ minAmount, targetAmount });
    this.heldTokens = this.countAffordableTokens();
    return outcome;
  }

  private calculatePrice(output: number): PicoUsd {
    const { quote, endpoint } = this.params;
    return money.add(quote.fees, calculateMaxCallPrice(quote.inputTokens, output, endpoint.tariff));
  }

  private countAffordableTokens(): number {
    const { purchase, quote, endpoint } = this.params;
    return countAffordableOutputTokens(
      money.subtract(purchase.hold.amount, quote.fees),
      quote.inputTokens,
      endpoint.tariff,
    );
  }

  /**
   * Estimates from the elapsed time what a reasoning model has used before its first output. Extends the hold if
   * necessary.
   */
  private checkHiddenUsage(): void {
    if (this.completion.getMaxGeneratedTokens() > 0) {
      clearInterval(this.hiddenCheckTimer);
      return;
    }
    const estimate = ((performance.now() - this.startedAtMs) / 1_000) * this.tokensPerSecond;
    this.hiddenTokens = Math.min(estimate, this.params.maxReasoningTokens);
    const { usedTokens } = this;
    if (usedTokens < this.extensionThreshold) return;
    if (usedTokens <= this.heldTokens) this.extendInAdvance(usedTokens);
    else if (!this.pendingForward)
      void this.trackForward(
        this.extendUntilCovered().then((isCovered) => this.forwardOrStop(isCovered, () => undefined)),
      );
  }

  /** Returns as many of the first events as the hold covers. The usage already includes all of these events. */
  private async selectCoveredEvents(events: Uint8Array): Promise<Uint8Array> {
    const pendingCounts = parseSseEvents(events).map(async (data) => ({
      data,
      tokens: (await this.params.countText(getGeneratedText(data))) * this.ratio,
    }));
    const all = await Promise.all(pendingCounts);
    let remaining = this.heldTokens - this.usedTokens + all.reduce((sum, { tokens }) => sum + tokens, 0);
    const covered = all.filter(({ tokens }) => {
      remaining -= tokens;
      return remaining >= 0;
    });
    return Buffer.from(covered.map(({ data }) => formatSseEvent(data)).join(''));
  }
}

/** Returns all strings in the deltas of a chat chunk, or the delta of an event of the Responses API. */
function getGeneratedText(data: string): string {
  const event = JSON.parse(data) as {
    readonly choices?: readonly { readonly delta?: object }[];
    readonly delta?: unknown;
  };
  if (typeof event.delta === 'string') return event.delta;
  return (event.choices ?? []).flatMap(({ delta = {} }) => collectStrings(delta)).join('');
}

function collectStrings(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(collectStrings) : [];
}
