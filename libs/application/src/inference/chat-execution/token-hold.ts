import type { Endpoint } from '#catalogue';
import { money, type PicoUsd } from '#kernel';
import { type ExtensionOutcome, MAX_UNCOVERED_MS } from '../../billing/extend-until-covered.ts';
import type { Purchase } from '../../billing/purchase.ts';
import {
  type ChatQuote,
  calculateMaxCallPrice,
  calculateStopPrice,
  countAffordableOutputTokens,
} from '../chat/chat-quote.ts';

/** An extension requests money for at least this many tokens beyond the current usage, up to the output limit. */
const MIN_EXTENSION_TOKENS = 64;

/** The hold of a running completion as a number of output tokens, of all choices together. */
export class TokenHold {
  /** The last result of `tokens`, which is read for every chunk. */
  private cache: { readonly amount: PicoUsd; readonly tokens: number } | undefined;

  constructor(
    private readonly params: {
      readonly purchase: Purchase;
      readonly quote: ChatQuote;
      readonly endpoint: Endpoint;
    },
  ) {}

  /** Output tokens that the hold pays for; negative if it does not pay for the input. */
  get tokens(): number {
    const { amount } = this.params.purchase.hold;
    if (this.cache?.amount !== amount) this.cache = { amount, tokens: this.countTokens(amount) };
    return this.cache.tokens;
  }

  /** Whether the most that the provider may bill is held. */
  get isComplete(): boolean {
    return this.params.purchase.hold.amount >= this.limitPrice;
  }

  /** Whether the account knows what may be generated before the provider stops, or need not know it. */
  get isSpeedKnown(): boolean {
    const { limitPrice, stopPrice } = this.params.purchase.hold;
    return limitPrice === undefined || stopPrice !== undefined;
  }

  /**
   * Requests a hold for twice as many output tokens as it covers now, at least for some more than are used, within the
   * price of the output limit. If not even that is available, it is enough that the usage is covered.
   */
  async extend(usedTokens: number): Promise<ExtensionOutcome> {
    const { purchase } = this.params;
    const needed = this.calculatePrice(usedTokens + MIN_EXTENSION_TOKENS);
    const targetAmount = money.max(needed, this.calculatePrice(this.tokens * 2));
    const outcome = await purchase.extendHold({ minAmount: needed, targetAmount });
    if (outcome === 'extended') return outcome;
    const minTokens = Math.max(usedTokens, this.tokens + 1);
    return purchase.extendHold({ minAmount: this.calculatePrice(minTokens), targetAmount: needed });
  }

  /** Extends the hold to what was generated in all, as far as money is available. */
  extendFinally(generatedTokens: number): Promise<void> {
    return this.params.purchase.extendHoldToPrice(this.calculatePrice(generatedTokens));
  }

  /** Extends the hold by a token, and states the speed of the completion with it. */
  stateSpeed(tokensPerSecond: number): Promise<ExtensionOutcome> {
    const { purchase, endpoint } = this.params;
    const measured = { endpoints: [endpoint], choices: 1 }; // the speed is that of all choices
    const stopPrice = calculateStopPrice(measured, MAX_UNCOVERED_MS, () => tokensPerSecond);
    const amount = this.calculatePrice(this.tokens + 1);
    return purchase.extendHold({ minAmount: amount, targetAmount: amount, stopPrice });
  }

  private countTokens(amount: PicoUsd): number {
    const { quote, endpoint } = this.params;
    return countAffordableOutputTokens(
      money.subtract(amount, quote.fees),
      quote.inputTokens,
      endpoint.tariff,
      quote.inputUnit,
    );
  }

  /** Returns the price of so many output tokens with the input, at most that of the output limit. */
  private calculatePrice(output: number): PicoUsd {
    const { quote, endpoint } = this.params;
    const { fees, inputTokens, inputUnit } = quote;
    const price = money.add(fees, calculateMaxCallPrice(inputTokens, output, endpoint.tariff, inputUnit));
    return money.min(price, this.limitPrice);
  }

  private get limitPrice(): PicoUsd {
    const { hold, order } = this.params.purchase;
    return hold.limitPrice ?? order.maxPrice;
  }
}
