import type { Endpoint, TokenPricedModel } from '#catalogue';
import { calculateMaxPrice, countAffordableUnits, type PartialHold, type Tariff } from '#domain';
import { money, type PicoUsd, parseUsd, Rejection, ZERO_USD } from '#kernel';
import { type ChatBody, getRequestedMaxTokens } from './chat-body.ts';
import { countMaxChatInputTokens } from './count-tokens.ts';

/** OpenAI accepts no lower limit for a response: below it, chat completions are called. */
export const MIN_RESPONSES_OUTPUT_TOKENS = 16;

/** The fewest tokens of output that an endpoint can be asked for. */
export function getMinOutputTokens({ speaks }: Pick<Endpoint, 'speaks'>): number {
  return speaks.includes('chat') ? 1 : MIN_RESPONSES_OUTPUT_TOKENS;
}

/** What a request may cost, before it is made. */
export interface ChatQuote {
  readonly inputTokens: number;
  readonly choices: number;
  /** The caller's own limit of output tokens per choice, at most what the model makes. */
  readonly requestedMaxTokens: number | undefined;
  readonly minPrice: PicoUsd;
  readonly maxPrice: PicoUsd;
  /** The least that it costs to search, where the web may or must be searched for it in rounds. */
  readonly search?: { readonly price: PicoUsd; readonly isRequired: boolean };
  /** How much of it is held at first; all of it where this is left out. */
  readonly partialHold?: PartialHold;
  /** Fees that are part of it, whatever the model does. */
  readonly fees: PicoUsd;
  /** The endpoints that may serve it: the quote covers each of them. */
  readonly endpoints: readonly Endpoint[];
}

const NO_EXTRA_INPUT = { inputTokens: 0, fees: ZERO_USD };

/** Input beside the messages. */
export function toExtraInput(inputTokens: number) {
  return inputTokens === 0 ? NO_EXTRA_INPUT : { inputTokens, fees: ZERO_USD };
}

/**
 * The maximum cost of a request; where the caller named no limit, at least the least output that there can be.
 * @param extraInput what is added to the request before it is sent, what that costs by itself, and how often the model reads
 * all of it where that is more than once
 */
export function quoteChatRequest(
  body: ChatBody,
  model: TokenPricedModel,
  endpoints: readonly Endpoint[],
  extraInput: { readonly inputTokens: number; readonly fees: PicoUsd; readonly reads?: number } = NO_EXTRA_INPUT,
): ChatQuote {
  const { fees, reads = 1 } = extraInput;
  const inputTokens = Math.min(countMaxChatInputTokens(body, model) + extraInput.inputTokens, model.context * reads);
  const choices = body.n ?? 1;
  const callerLimit = getRequestedMaxTokens(body);
  const requestedMaxTokens = callerLimit === undefined ? undefined : Math.min(callerLimit, model.maxOutput);
  const pricedRequest = { inputTokens, choices, fees, endpoints };
  const maxPrice = calculateQuotePrice(requestedMaxTokens ?? model.maxOutput, pricedRequest);
  const minPrice =
    requestedMaxTokens === undefined
      ? calculateQuotePrice(getMinOutputForEndpoints(endpoints), pricedRequest)
      : maxPrice;
  return { ...pricedRequest, requestedMaxTokens, minPrice, maxPrice };
}

type PricedRequest = Pick<ChatQuote, 'inputTokens' | 'choices' | 'fees' | 'endpoints'>;

/** The price of a request with so much output per choice, at most. */
export function calculateQuotePrice(output: number, { inputTokens, choices, fees, endpoints }: PricedRequest): PicoUsd {
  const prices = endpoints.map(({ tariff }) => calculateMaxCallPrice(inputTokens, output * choices, tariff));
  return money.add(fees, money.max(...prices));
}

/**
 * What a request holds of what is available where that is more than its first part: of one that can be given more while
 * it is answered, little, so that others find something; of one that cannot, enough for a long answer.
 */
export const EXTENSIBLE_HOLD_DIVISOR = 64n;
const FIXED_HOLD_DIVISOR = 8n;

/** What one request may hold of an amount where more cannot be held while it is answered. */
export function calculateFixedShare(amount: PicoUsd): PicoUsd {
  return (amount / FIXED_HOLD_DIVISOR) as PicoUsd;
}

/**
 * The same for an answer that is not held in full: the caller names no limit, or one that is a habit and no intention.
 * @param initialTokens tokens of output per choice that are held for at first
 * @param isExtensible whether more can be held while it is answered
 */
export function toPartialQuote(quote: ChatQuote, initialTokens: number, isExtensible: boolean): ChatQuote {
  const { search, endpoints, maxPrice, requestedMaxTokens: limit } = quote;
  const requiredPrice = search?.isRequired ? search.price : ZERO_USD;
  // Without a limit the least is what it was quoted with.
  const minOutputPrice =
    limit === undefined ? quote.minPrice : calculateQuotePrice(getMinOutputForEndpoints(endpoints), quote);
  const minPrice = money.min(money.max(minOutputPrice, requiredPrice), maxPrice);
  const initialPrice = money.max(calculateQuotePrice(initialTokens, quote), search?.price ?? ZERO_USD);
  const partialHold = {
    minAmount: money.min(initialPrice, maxPrice),
    divisor: isExtensible ? EXTENSIBLE_HOLD_DIVISOR : FIXED_HOLD_DIVISOR,
  };
  return { ...quote, minPrice, partialHold };
}

/** How many output tokens per choice an amount affords beside the input; negative when not even that. */
export function countAffordableTokensPerChoice(
  amount: PicoUsd,
  { inputTokens, choices, fees, endpoints }: ChatQuote,
): number {
  const remaining = money.subtract(amount, fees);
  const tokenCounts = endpoints.map(({ tariff }) => countAffordableOutputTokens(remaining, inputTokens, tariff));
  return Math.floor(Math.min(...tokenCounts) / choices);
}

/** The most that a call can be sold for that has so many tokens at most. */
export function calculateMaxCallPrice(input: number, output: number, { prices }: Tariff): PicoUsd {
  return calculateMaxPrice({ input, output, request: 1 }, prices);
}

/** The most output tokens that an amount affords beside an input, at their dearest; negative when not even the input. */
export function countAffordableOutputTokens(amount: PicoUsd, input: number, { prices }: Tariff): number {
  return countAffordableUnits(amount, { unit: 'output', beside: { input, request: 1 } }, prices);
}

/** A refusal for lack of money that also says what there is money for, what running requests hold, and what helps. */
export function explainInsufficientBalance(error: unknown, quote: ChatQuote): unknown {
  if (!(error instanceof Rejection) || error.details.affordable === undefined) return error;
  const { required = '', affordable, held } = error.details;
  const tokens = countAffordableTokensPerChoice(parseUsd(affordable), quote);
  const coverage =
    tokens >= getMinOutputForEndpoints(quote.endpoints)
      ? `enough for max_tokens up to ${tokens}`
      : 'not enough for this input';
  const needs = quote.partialHold ? 'the request needs' : 'the request may cost';
  const there = `${needs} ${required} USD and ${affordable} USD is there, ${coverage}`;
  const running =
    held === undefined
      ? ''
      : `; ${held} USD is held by running requests, and what they do not use is back when they end`;
  return error.withMessage(`${error.message}: ${there}${running}`, { affordable_tokens: String(Math.max(tokens, 0)) });
}

/** The fewest output tokens that an answer must be able to have, from any of these endpoints. */
function getMinOutputForEndpoints(endpoints: readonly Endpoint[]): number {
  return Math.max(...endpoints.map(getMinOutputTokens));
}
