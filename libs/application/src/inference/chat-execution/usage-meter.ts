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
const ASKS_AHEAD_TOKENS = 8;
/** What is asked for at least, beyond what is used. */
const LEAST_TOKENS = 64;
/** A model that thinks unseen is taken to be so many times as fast as usual. */
const UNSEEN = 2;
/** How long an answer stands still that waits for what other requests hold, and how often it asks. */
const WAITS_MS = 5_000;
const ASKS_AGAIN_MS = 100;
/** How often it is looked whether anything has come. */
const LOOKS_EVERY_MS = 250;

/** What is metered. */
export interface MeterParams {
  readonly purchase: Purchase;
  readonly quote: ChatQuote;
  readonly endpoint: Endpoint;
  readonly lengths: OutputLengthStats;
  readonly tokensPerSecond: number | undefined;
  /** It may use tokens that are not seen. */
  readonly thinks: boolean;
}

export class UsageMeter {
  /** Tokens of output, of all choices, that the hold affords. */
  private held: number;
  /** Tokens that were counted, those of so many characters of the text for good, when so many bytes of it were there. */
  private counted = 0;
  private beforeGap = 0;
  private characters = 0;
  private bytes = 0;
  /** Tokens that may have been made before anything was seen. */
  private unseen = 0;
  private readonly began = performance.now();
  private asking: Promise<unknown> | undefined;
  /** Asked for in vain when so much was used. */
  private refusedAt = -1;
  private waiting: Promise<void> | undefined;
  private stopped = false;
  private usedUp = false;
  private readonly ratio: number;
  private readonly perSecond: number;
  private look: NodeJS.Timeout | undefined;

  constructor(
    private readonly metered: MeterParams,
    private readonly answer: CompletionStream,
  ) {
    const { lengths, purchase, tokensPerSecond, thinks } = metered;
    this.ratio = lengths.ratio(purchase.sale.model.id);
    this.perSecond = getTypicalSpeed(tokensPerSecond);
    this.held = this.affordedTokens();
    if (thinks) this.look = setInterval(() => this.lookForUnseen(), LOOKS_EVERY_MS).unref();
  }

  /** The same receiver, for what is held for; the answer is cut short where that ends. */
  through(pass: SseEventSink): SseEventSink {
    return (events, search) => {
      const room = this.waiting ? this.waiting.then(() => this.take() ?? true) : this.take();
      if (!room) return pass(events, search);
      return this.wait(
        room.then((enough) => this.passOn(enough, () => pass(enough ? events : this.heldFor(events), search))),
      );
    };
  }

  /** Resolves once everything that was received has been passed on. */
  async over(): Promise<void> {
    clearInterval(this.look);
    await this.waiting;
    await this.asking;
  }

  /** What was held was used, and there was no more: the answer was cut short. */
  get isUsedUp(): boolean {
    return this.usedUp;
  }

  /** Tokens of output that are charged for an answer that was cut short: what may have been used, and is held. */
  get charged(): number {
    return Math.min(Math.ceil(this.counted * this.ratio + this.unseen / UNSEEN), this.held);
  }

  /** Compares our count with the vendor's, of what can be seen. */
  compare(visible: number): void {
    if (this.counted === 0) return;
    this.count();
    this.metered.lengths.compared(this.metered.purchase.sale.model.id, this.counted, visible);
  }

  private wait(passed: Promise<void>): Promise<void> {
    this.waiting = passed;
    void passed.then(() => {
      if (this.waiting === passed) this.waiting = undefined;
    });
    return passed;
  }

  private async passOn(enough: boolean, pass: () => Promise<void> | undefined): Promise<void> {
    if (this.stopped) return;
    try {
      await pass();
    } catch (error) {
      this.stop(toUpstreamError(error));
    }
    if (enough || this.stopped) return;
    this.usedUp = true;
    this.stop(new UpstreamError('hold_used_up', 'All that is held for the answer was used'));
  }

  private stop(failure: UpstreamError): void {
    this.stopped = true;
    clearInterval(this.look);
    this.metered.purchase.cutShort(failure);
  }

  /** Undefined: there is room. Else whether there is, once it is known. */
  private take(): Promise<boolean> | undefined {
    if (this.stopped) return Promise.resolve(false);
    const { asksAt } = this;
    if (this.usedAtMost < asksAt) return undefined;
    this.count();
    const { used } = this;
    if (used < asksAt) return undefined;
    if (used > this.held) return this.enough();
    this.askAhead(used);
    return undefined;
  }

  /** Where more is asked for; never, once all that it can come to is held. */
  private get asksAt(): number {
    return this.isAllHeld ? Number.POSITIVE_INFINITY : this.held - ASKS_AHEAD_TOKENS;
  }

  /** All that it can come to is held, whatever we count. */
  private get isAllHeld(): boolean {
    const { hold, sale } = this.metered.purchase;
    return hold.amount >= sale.atMost;
  }

  /** A byte is a token at most. */
  private get usedAtMost(): number {
    return (this.counted + this.answer.generatedAtMost() - this.bytes) * this.ratio + this.unseen;
  }

  private get used(): number {
    return Math.ceil(this.counted * this.ratio + this.unseen);
  }

  /** Up to the last gap once and for all: what is behind it may be a part of a token. */
  private count(): void {
    const text = this.answer.deliveredText();
    const gap = text.lastIndexOf(' ');
    const end = gap > this.characters ? gap : this.characters;
    this.beforeGap += countTokensSync(text.slice(this.characters, end));
    this.characters = end;
    this.counted = this.beforeGap + countTokensSync(text.slice(end));
    this.bytes = this.answer.generatedAtMost();
  }

  /** What was refused is asked for again, when half of what was left is used. */
  private askAhead(used: number): void {
    if (this.asking || used < this.refusedAt + (this.held - this.refusedAt) / 2) return;
    this.asking = this.grow(used)
      .then((grown) => {
        this.refusedAt = grown === 'grown' ? -1 : used;
      })
      .catch((error) => this.stop(toUpstreamError(error)))
      .finally(() => {
        this.asking = undefined;
      });
  }

  /** The answer waits a little for what other requests hold: most of it is back when they end. */
  private async enough(): Promise<boolean> {
    await this.asking;
    try {
      for (let waited = 0; this.used > this.held && !this.isAllHeld; ) {
        const grown = await this.grow(this.used);
        if (grown === 'grown') continue;
        if (grown === 'no more' || waited >= WAITS_MS || this.metered.purchase.signal.aborted) return false;
        await delay(ASKS_AGAIN_MS);
        waited += ASKS_AGAIN_MS;
      }
      return true;
    } catch (error) {
      this.stop(toUpstreamError(error));
      return false;
    }
  }

  /** Twice the output is held for, or what there is. */
  private async grow(used: number): Promise<'grown' | 'not now' | 'no more'> {
    const { purchase } = this.metered;
    const to = this.priceOf(Math.max(this.held * 2, used + LEAST_TOKENS));
    const atLeast = money.min(this.priceOf(this.held + 1), purchase.sale.atMost);
    const grown = await purchase.grow({ minAmount: atLeast, targetAmount: to });
    this.held = this.affordedTokens();
    return grown;
  }

  private priceOf(output: number): PicoUsd {
    const { quote, endpoint } = this.metered;
    return money.add(quote.fees, calculateMaxCallPrice(quote.inputTokens, output, endpoint.tariff));
  }

  private affordedTokens(): number {
    const { purchase, quote, endpoint } = this.metered;
    return countAffordableOutputTokens(
      money.subtract(purchase.hold.amount, quote.fees),
      quote.inputTokens,
      endpoint.tariff,
    );
  }

  /** Nothing is seen of a model that thinks: only time says what it may have used. */
  private lookForUnseen(): void {
    if (this.answer.generatedAtMost() > 0) {
      clearInterval(this.look);
      return;
    }
    this.unseen = ((performance.now() - this.began) / 1_000) * this.perSecond * UNSEEN;
    const { used } = this;
    if (used < this.asksAt) return;
    if (used <= this.held) this.askAhead(used);
    else if (!this.waiting) void this.wait(this.enough().then((enough) => this.passOn(enough, () => undefined)));
  }

  /** As many of these events, which have been counted, as are held for. */
  private heldFor(events: Uint8Array): Uint8Array {
    const all = parseSseEvents(events).map((data) => ({ data, tokens: countTokensSync(textIn(data)) * this.ratio }));
    let left = this.held - this.used + all.reduce((sum, { tokens }) => sum + tokens, 0);
    const kept = all.filter(({ tokens }) => {
      left -= tokens;
      return left >= 0;
    });
    return Buffer.from(kept.map(({ data }) => formatSseEvent(data)).join(''));
  }
}

/** What was generated of a chunk of a chat, or of an event of a response. */
function textIn(data: string): string {
  const event = JSON.parse(data) as {
    readonly choices?: readonly { readonly delta?: object }[];
    readonly delta?: unknown;
  };
  if (typeof event.delta === 'string') return event.delta;
  return (event.choices ?? []).flatMap(({ delta = {} }) => stringsIn(delta)).join('');
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}
