import type { PicoUsd } from '#kernel';
import type { VirtualTime } from './virtual-time.ts';

/** A provider is disconnected this long after the last usage that the hold covered. */
export const MAX_UNCOVERED_MS = 500;
/** How long a complete response waits for money. */
const MAX_COMPLETE_WAIT_MS = 5_000;
const EXTENSION_RETRY_MS = 100;
const EXTENSION_LEAD_TOKENS = 8;
const MIN_EXTENSION_TOKENS = 64;

export interface SimulatedModel {
  readonly tokenPrice: bigint;
  readonly promptPrice: bigint;
  /** The actual speed of the provider. */
  readonly tokensPerSecond: number;
  /** Whether the provider sends the tokens one by one. Otherwise it cannot be stopped before it has generated all. */
  readonly isStreamed: boolean;
}

export type ResponseEnd = 'complete' | 'truncated' | 'disconnected';

export interface ResponseParams {
  readonly model: SimulatedModel;
  /** Length of the response without any limit. */
  readonly tokens: number;
  readonly held: PicoUsd;
  readonly limitPrice: PicoUsd;
  /** Returns the amount of the hold afterwards. */
  extend(held: PicoUsd, minAmount: PicoUsd, targetAmount: PicoUsd): PicoUsd;
  onEnd(tokens: number, end: ResponseEnd): void;
}

/** Returns the price of a response, rounded up to complete tokens. */
export function priceResponse({ promptPrice, tokenPrice }: SimulatedModel, tokens: number): PicoUsd {
  return (promptPrice + tokenPrice * BigInt(Math.ceil(tokens))) as PicoUsd;
}

/**
 * A response whose hold is extended while it is generated. It is stopped as late as permitted, and the provider bills
 * everything until then.
 */
export class SimulatedResponse {
  private held: PicoUsd;
  private hasEnded = false;
  private readonly startedAtMs: number;
  /** Tokens until the provider stops by itself. */
  private readonly generated: number;

  constructor(
    private readonly time: VirtualTime,
    private readonly params: ResponseParams,
  ) {
    this.held = params.held;
    this.startedAtMs = time.nowMs;
    this.generated = Math.min(params.tokens, this.countTokens(params.limitPrice));
    if (params.model.isStreamed) this.scheduleExtension();
    else this.scheduleAt(this.generated, () => this.finish(this.time.nowMs + MAX_COMPLETE_WAIT_MS));
  }

  /** The client has disconnected: a provider that streams is stopped. */
  disconnect(): void {
    if (this.params.model.isStreamed) this.end(this.usedTokens, 'disconnected');
  }

  /** The gateway has died. */
  abandon(): void {
    this.hasEnded = true;
  }

  private get usedTokens(): number {
    return Math.min(((this.time.nowMs - this.startedAtMs) / 1_000) * this.params.model.tokensPerSecond, this.generated);
  }

  private countTokens(amount: PicoUsd): number {
    const { promptPrice, tokenPrice } = this.params.model;
    return Number((amount - promptPrice) / tokenPrice);
  }

  /** Waits until the hold is nearly used up, then extends it. */
  private scheduleExtension(): void {
    const heldTokens = this.countTokens(this.held);
    if (heldTokens >= this.generated) this.scheduleAt(this.generated, () => this.end(this.generated, 'complete'));
    else {
      const stopsAtMs = this.getTimeMs(heldTokens) + MAX_UNCOVERED_MS;
      this.scheduleAt(heldTokens - EXTENSION_LEAD_TOKENS, () => this.extendUntil(stopsAtMs));
    }
  }

  private extendUntil(stopsAtMs: number): void {
    const { nowMs } = this.time;
    const endsAtMs = this.getTimeMs(this.generated);
    if (this.extend()) this.scheduleExtension();
    else if (nowMs >= stopsAtMs) this.end(this.usedTokens, 'truncated');
    else if (nowMs >= endsAtMs) this.finish(nowMs + MAX_COMPLETE_WAIT_MS);
    else {
      const nextMs = Math.min(nowMs + EXTENSION_RETRY_MS, stopsAtMs, endsAtMs);
      this.schedule(nextMs - nowMs, () => this.extendUntil(stopsAtMs));
    }
  }

  /** The provider has ended the response, and bills nothing more. */
  private finish(deadlineMs: number): void {
    const price = priceResponse(this.params.model, this.generated);
    while (this.held < price && this.extend());
    if (this.held >= price) this.end(this.generated, 'complete');
    else if (this.time.nowMs >= deadlineMs) this.end(this.generated, 'truncated');
    else this.schedule(EXTENSION_RETRY_MS, () => this.finish(deadlineMs));
  }

  /** @returns whether the hold covers more than before */
  private extend(): boolean {
    const { model, limitPrice, extend } = this.params;
    const { held } = this;
    const heldTokens = this.countTokens(held);
    const toAmount = (tokens: number) => {
      const price = priceResponse(model, tokens);
      return price < limitPrice ? price : limitPrice;
    };
    const target = Math.max(heldTokens * 2, this.usedTokens + MIN_EXTENSION_TOKENS);
    this.held = extend(held, toAmount(heldTokens + 1), toAmount(target));
    return this.held > held;
  }

  private end(tokens: number, end: ResponseEnd): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    const isLimited = end === 'complete' && tokens < this.params.tokens;
    this.params.onEnd(tokens, isLimited ? 'truncated' : end);
  }

  private getTimeMs(tokens: number): number {
    return this.startedAtMs + (tokens / this.params.model.tokensPerSecond) * 1_000;
  }

  private scheduleAt(tokens: number, run: () => void): void {
    this.schedule(this.getTimeMs(tokens) - this.time.nowMs, run);
  }

  private schedule(delayMs: number, run: () => void): void {
    this.time.schedule(delayMs, () => {
      if (!this.hasEnded) run();
    });
  }
}
