import type { Endpoint, TokenPricedModel } from '#catalogue';
import { calculateMaxPrice, countAffordableUnits, type PartialHold, type Tariff } from '#domain';
import { money, type PicoUsd, parseUsd, Rejection, ZERO_USD } from '#kernel';
import { type ChatBody, getRequestedMaxTokens, requestsHourCache } from './chat-body.ts';
import { countMaxChatInputTokens } from './count-tokens.ts';

/** The lowest output limit that OpenAI's Responses API accepts. Lower limits require the Chat Completions API. */
export const MIN_RESPONSES_OUTPUT_TOKENS = 16;

/** Returns the lowest output limit that an endpoint accepts, in tokens. */
export function getMinOutputTokens({ speaks }: Pick<Endpoint, 'speaks'>): number {
  return speaks.includes('chat') ? 1 : MIN_RESPONSES_OUTPUT_TOKENS;
}

/** The unit whose bound covers the input tokens: a cache write for an hour costs more than other input. */
export type InputUnit = 'input' | 'cacheWriteHour';

/** The price bounds of a chat request, calculated before money is held. */
export interface ChatQuote {
  readonly inputTokens: number;
  readonly inputUnit: InputUnit;
  readonly choices: number;
  /** The caller's limit of output tokens per choice, at most the model's maximum; undefined if the request has none. */
  readonly requestedMaxTokens: number | undefined;
  readonly minPrice: PicoUsd;
  readonly maxPrice: PicoUsd;
  /** The minimum price of the request with one search, if the model may or must search while it generates. */
  readonly search?: { readonly price: PicoUsd; readonly isRequired: boolean };
  /** The part of the maximum price that is held at first; omitted if all of it is held. */
  readonly partialHold?: PartialHold;
  /** Fixed fees, such as that of a search before the model is called. */
  readonly fees: PicoUsd;
  /** The endpoints that may serve the request. The quote covers the most expensive of them. */
  readonly endpoints: readonly Endpoint[];
}

const NO_EXTRA_INPUT = { inputTokens: 0, fees: ZERO_USD };

/** Creates the `extraInput` of a quote for further input tokens without fees. */
export function toExtraInput(inputTokens: number) {
  return inputTokens === 0 ? NO_EXTRA_INPUT : { inputTokens, fees: ZERO_USD };
}

/**
 * Quotes a chat request. With an output limit of the caller, the minimum price is the maximum price. Without one, the
 * minimum price covers the lowest output limit that the endpoints accept.
 * @param extraInput maximum tokens that are added to the messages, fixed fees, and how often the model reads the input
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
  const pricedRequest = { inputTokens, inputUnit: getInputUnit(body), choices, fees, endpoints };
  const maxPrice = calculateQuotePrice(requestedMaxTokens ?? model.maxOutput, pricedRequest);
  const minPrice =
    requestedMaxTokens === undefined
      ? calculateQuotePrice(getMinOutputForEndpoints(endpoints), pricedRequest)
      : maxPrice;
  return { ...pricedRequest, requestedMaxTokens, minPrice, maxPrice };
}

export function getInputUnit(body: ChatBody): InputUnit {
  return requestsHourCache(body) ? 'cacheWriteHour' : 'input';
}

type PricedRequest = Pick<ChatQuote, 'inputTokens' | 'inputUnit' | 'choices' | 'fees' | 'endpoints'>;

/** Calculates the maximum price of a request at its most expensive endpoint, with `output` tokens per choice. */
export function calculateQuotePrice(
  output: number,
  { inputTokens, inputUnit, choices, fees, endpoints }: PricedRequest,
): PicoUsd {
  const prices = endpoints.map(({ tariff }) => calculateMaxCallPrice(inputTokens, output * choices, tariff, inputUnit));
  return money.add(fees, money.max(...prices));
}

/**
 * A partial hold takes the available amount divided by one of these numbers if that exceeds its initial price. An
 * extensible hold takes little and leaves money for other requests. Any other hold must be sufficient for a long
 * response.
 */
export const EXTENSIBLE_HOLD_DIVISOR = 64n;
const FIXED_HOLD_DIVISOR = 8n;

/** Calculates the part of an amount that one request may hold if its hold cannot be extended during the response. */
export function calculateFixedShare(amount: PicoUsd): PicoUsd {
  return (amount / FIXED_HOLD_DIVISOR) as PicoUsd;
}

/** Numbers of output tokens per choice that determine a partial hold. */
export interface OutputLengths {
  /** Covered by the hold at first. */
  readonly initial: number;
  /** A usual long response: the output limit for the provider is not lower, unless the money is not sufficient. */
  readonly long: number;
  /** A long response, up to which other requests leave money. */
  readonly reserved: number;
}

/**
 * Changes a quote to a partial hold. Its request has no output limit, has one so high that it is probably a default of
 * the client, or may search while the model generates.
 * @param extension set if the hold can be extended during the response: the price of what is generated before the provider
 *   stops, if the speed is known
 */
export function toPartialQuote(
  quote: ChatQuote,
  lengths: OutputLengths,
  extension?: { readonly stopPrice: PicoUsd | undefined },
): ChatQuote {
  const { search, endpoints, maxPrice, requestedMaxTokens: limit } = quote;
  const requiredPrice = search?.isRequired ? search.price : ZERO_USD;
  // A quote without an output limit already has the minimum price of the lowest output.
  const minOutputPrice =
    limit === undefined ? quote.minPrice : calculateQuotePrice(getMinOutputForEndpoints(endpoints), quote);
  const minPrice = money.min(money.max(minOutputPrice, requiredPrice), maxPrice);
  const initialPrice = money.max(calculateQuotePrice(lengths.initial, quote), search?.price ?? ZERO_USD);
  const calculateLimited = (tokens: number) => money.min(calculateQuotePrice(tokens, quote), maxPrice);
  const partialHold: PartialHold = {
    minAmount: money.min(initialPrice, maxPrice),
    divisor: extension ? EXTENSIBLE_HOLD_DIVISOR : FIXED_HOLD_DIVISOR,
    extension: extension && {
      minLimitPrice: calculateLimited(lengths.long),
      longPrice: calculateLimited(lengths.reserved),
      stopPrice: extension.stopPrice,
    },
  };
  return { ...quote, minPrice, partialHold };
}

/**
 * Returns the price of the output tokens of all choices that are generated within a time.
 * @param getTokensPerSecond returns the maximum speed of one choice; undefined if it is unknown
 * @returns undefined if the speed of an endpoint is unknown
 */
export function calculateStopPrice(
  { endpoints, choices }: Pick<ChatQuote, 'endpoints' | 'choices'>,
  milliseconds: number,
  getTokensPerSecond: (endpoint: Endpoint) => number | undefined,
): PicoUsd | undefined {
  let highest = ZERO_USD;
  for (const endpoint of endpoints) {
    if (endpoint.onDisconnect !== 'stops') continue; // a call of such an endpoint may use no more than what is held
    const tokensPerSecond = getTokensPerSecond(endpoint);
    if (tokensPerSecond === undefined || !Number.isFinite(tokensPerSecond)) return undefined;
    // The last count may have missed almost a token of each choice.
    const output = Math.ceil((tokensPerSecond * choices * milliseconds) / 1_000) + choices;
    if (!Number.isSafeInteger(output)) return undefined;
    highest = money.max(highest, calculateMaxPrice({ output }, endpoint.tariff.prices));
  }
  return highest;
}

/**
 * Returns how many output tokens per choice the amount pays for, in addition to the fees and the input.
 * @returns a negative number if it does not pay for the fees and the input
 */
export function countAffordableTokensPerChoice(
  amount: PicoUsd,
  { inputTokens, inputUnit, choices, fees, endpoints }: ChatQuote,
): number {
  const remaining = money.subtract(amount, fees);
  const tokenCounts = endpoints.map(({ tariff }) =>
    countAffordableOutputTokens(remaining, inputTokens, tariff, inputUnit),
  );
  return Math.floor(Math.min(...tokenCounts) / choices);
}

/** Calculates the maximum price of one call with at most these tokens. */
export function calculateMaxCallPrice(
  input: number,
  output: number,
  { prices }: Tariff,
  inputUnit: InputUnit = 'input',
): PicoUsd {
  return calculateMaxPrice({ [inputUnit]: input, output, request: 1 }, prices);
}

/**
 * Returns how many output tokens the amount pays for at their maximum price, in addition to the input.
 * @returns -1 if it does not pay for the input
 */
export function countAffordableOutputTokens(
  amount: PicoUsd,
  input: number,
  { prices }: Tariff,
  inputUnit: InputUnit = 'input',
): number {
  return countAffordableUnits(amount, { unit: 'output', beside: { [inputUnit]: input, request: 1 } }, prices);
}

/**
 * Adds to a rejection for lack of money the number of affordable output tokens, and the amount that is held for running
 * requests. Other errors are returned unchanged.
 */
export function explainInsufficientBalance(error: unknown, quote: ChatQuote): unknown {
  if (!(error instanceof Rejection) || error.details.affordable === undefined) return error;
  const { required = '', affordable, held } = error.details;
  const tokens = countAffordableTokensPerChoice(parseUsd(affordable), quote);
  const coverage =
    tokens >= getMinOutputForEndpoints(quote.endpoints)
      ? `enough for max_tokens up to ${tokens}`
      : 'not enough for this input';
  const needs = quote.partialHold ? 'the request needs' : 'the request may cost';
  const there = `${needs} ${required} USD and ${affordable} USD is available, ${coverage}`;
  const running =
    held === undefined
      ? ''
      : `; ${held} USD is held for running requests, and its unused part becomes available when they end`;
  return error.withMessage(`${error.message}: ${there}${running}`, { affordable_tokens: String(Math.max(tokens, 0)) });
}

/** Returns the lowest output limit that every one of these endpoints accepts, in tokens. */
function getMinOutputForEndpoints(endpoints: readonly Endpoint[]): number {
  return Math.max(...endpoints.map(getMinOutputTokens));
}
