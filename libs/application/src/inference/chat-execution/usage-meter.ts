/**
 * What an answer uses while it comes, and more money before what is held is used up: as in credit control of phone calls
 * (RFC 8506), where a quota is granted again while the call goes on. Nothing is passed on that is not held for.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Endpoint } from '#catalogue';
import { money, type PicoUsd } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { CompletionStream, SseEventSink } from '../../providers/provider.ts';
import { getTypicalSpeed } from '../../routing/endpoint-health.ts';
import { formatSseEvent, parseSseEvents } from '../../wire/sse.ts';
import { type ChatQuote, calculateMaxCallPrice, countAffordableOutputTokens } from '../chat/chat-quote.ts';
import { countTokensSync } from '../chat/count-tokens.ts';
import type { OutputLengthStats } from './output-length-stats.ts';

/**
 * More is asked for when so many tokens are left, and no sooner: an answer that ends just there would take from others what
 * it never needs. An append is over in milliseconds, and the answer stands still for no longer.
 */
const EXTENSION_LEAD_TOKENS = 8;
/** What is asked for at least, beyond what is used. */
const MIN_EXTENSION_TOKENS = 64;
/** A model that thinks unseen is taken to be so many times as fast as usual. */
const HIDDEN_SPEED_FACTOR = 2;
/** How long an answer stands still that waits for what other requests hold, and how often it asks. */
const MAX_EXTENSION_WAIT_MS = 5_000;
const EXTENSION_RETRY_MS = 100;
/** How often it is looked whether anything has come. */
const HIDDEN_CHECK_INTERVAL_MS = 250;

/** What is metered. */
export interface MeterParams {
  readonly purchase: Purchase;
  readonly quote: ChatQuote;
  readonly endpoint: Endpoint;
  readonly lengths: OutputLengthStats;
  readonly tokensPerSecond: number | undefined;
  /** It may use tokens that are not seen. */
  readonly hasReasoning: boolean;
}

export class UsageMeter {
  /** Tokens of output, of all choices, that the hold affords. */
  private heldTokens: number;
  /** Tokens that were counted, those of so many characters of the text for good, when so many bytes of it were there. */
  private countedTokens = 0;
  private tokensBeforeGap = 0;
  private countedCharacters = 0;
  private maxTokensAtCount = 0;
  /** Tokens that may have been made before anything was seen. */
  private hiddenTokens = 0;
  private readonly startedAtMs = performance.now();
  private pendingExtension: Promise<unknown> | undefined;
  /** Asked for in vain when so much was used. */
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
    const { lengths, purchase, tokensPerSecond, hasReasoning } = params;
    this.ratio = lengths.getRatio(purchase.order.model.id);
    this.tokensPerSecond = getTypicalSpeed(tokensPerSecond);
    this.heldTokens = this.countAffordableTokens();
    if (hasReasoning)
      this.hiddenCheckTimer = setInterval(() => this.checkHiddenUsage(), HIDDEN_CHECK_INTERVAL_MS).unref();
  }

  /** The same receiver, for what is held for; the answer is cut short where that ends. */
  wrapSink(sink: SseEventSink): SseEventSink {
    return (events, search) => {
      const pendingCheck = this.pendingForward
        ? this.pendingForward.then(() => this.checkHold() ?? true)
        : this.checkHold();
      if (!pendingCheck) return sink(events, search);
      return this.trackForward(
        pendingCheck.then((isCovered) =>
          this.forwardOrStop(isCovered, () => sink(isCovered ? events : this.selectCoveredEvents(events), search)),
        ),
      );
    };
  }

  /** Resolves once everything that was received has been passed on. */
  async finish(): Promise<void> {
    clearInterval(this.hiddenCheckTimer);
    await this.pendingForward;
    await this.pendingExtension;
  }

  /** What was held was used, and there was no more: the answer was cut short. */
  get isUsedUp(): boolean {
    return this.hasRunOut;
  }

  /** Tokens of output that are charged for an answer that was cut short: what may have been used, and is held. */
  get chargedTokens(): number {
    return Math.min(
      Math.ceil(this.countedTokens * this.ratio + this.hiddenTokens / HIDDEN_SPEED_FACTOR),
      this.heldTokens,
    );
  }

  /** Compares our count with the vendor's, of what can be seen. */
  recordRatio(visible: number): void {
    if (this.countedTokens === 0) return;
    this.updateCount();
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
    this.stop(new UpstreamError('hold_used_up', 'All that is held for the answer was used'));
  }

  private stop(failure: UpstreamError): void {
    this.isStopped = true;
    clearInterval(this.hiddenCheckTimer);
    this.params.purchase.abort(failure);
  }

  /** Undefined: there is room. Else whether there is, once it is known. */
  private checkHold(): Promise<boolean> | undefined {
    if (this.isStopped) return Promise.resolve(false);
    const { extensionThreshold } = this;
    if (this.maxUsedTokens < extensionThreshold) return undefined;
    this.updateCount();
    const { usedTokens } = this;
    if (usedTokens < extensionThreshold) return undefined;
    if (usedTokens > this.heldTokens) return this.extendUntilCovered();
    this.extendInAdvance(usedTokens);
    return undefined;
  }

  /** Where more is asked for; never, once all that it can come to is held. */
  private get extensionThreshold(): number {
    return this.isFullyHeld ? Number.POSITIVE_INFINITY : this.heldTokens - EXTENSION_LEAD_TOKENS;
  }

  /** All that it can come to is held, whatever we count. */
  private get isFullyHeld(): boolean {
    const { hold, order } = this.params.purchase;
    return hold.amount >= order.maxPrice;
  }

  /** A byte is a token at most. */
  private get maxUsedTokens(): number {
    return (
      (this.countedTokens + this.completion.getMaxGeneratedTokens() - this.maxTokensAtCount) * this.ratio +
      this.hiddenTokens
    );
  }

  private get usedTokens(): number {
    return Math.ceil(this.countedTokens * this.ratio + this.hiddenTokens);
  }

  /** Up to the last gap once and for all: what is behind it may be a part of a token. */
  private updateCount(): void {
    const text = this.completion.getDeliveredText();
    const gap = text.lastIndexOf(' ');
    const end = gap > this.countedCharacters ? gap : this.countedCharacters;
    this.tokensBeforeGap += countTokensSync(text.slice(this.countedCharacters, end));
    this.countedCharacters = end;
    this.countedTokens = this.tokensBeforeGap + countTokensSync(text.slice(end));
    this.maxTokensAtCount = this.completion.getMaxGeneratedTokens();
  }

  /** What was refused is asked for again, when half of what was left is used. */
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

  /** The answer waits a little for what other requests hold: most of it is back when they end. */
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

  /** Twice the output is held for, or what there is. */
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

  /** Nothing is seen of a model that thinks: only time says what it may have used. */
  private checkHiddenUsage(): void {
    if (this.completion.getMaxGeneratedTokens() > 0) {
      clearInterval(this.hiddenCheckTimer);
      return;
    }
    this.hiddenTokens = ((performance.now() - this.startedAtMs) / 1_000) * this.tokensPerSecond * HIDDEN_SPEED_FACTOR;
    const { usedTokens } = this;
    if (usedTokens < this.extensionThreshold) return;
    if (usedTokens <= this.heldTokens) this.extendInAdvance(usedTokens);
    else if (!this.pendingForward)
      void this.trackForward(
        this.extendUntilCovered().then((isCovered) => this.forwardOrStop(isCovered, () => undefined)),
      );
  }

  /** As many of these events, which have been counted, as are held for. */
  private selectCoveredEvents(events: Uint8Array): Uint8Array {
    const all = parseSseEvents(events).map((data) => ({
      data,
      tokens: countTokensSync(getGeneratedText(data)) * this.ratio,
    }));
    let remaining = this.heldTokens - this.usedTokens + all.reduce((sum, { tokens }) => sum + tokens, 0);
    const covered = all.filter(({ tokens }) => {
      remaining -= tokens;
      return remaining >= 0;
    });
    return Buffer.from(covered.map(({ data }) => formatSseEvent(data)).join(''));
  }
}

/** What was generated of a chunk of a chat, or of an event of a response. */
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
