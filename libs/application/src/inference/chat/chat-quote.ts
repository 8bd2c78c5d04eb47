import type { Endpoint, TokenPricedModel } from '#catalogue';
import { calculateMaxPrice, countAffordableUnits, type PartialHold, type Tariff } from '#domain';
import { money, type PicoUsd, parseUsd, Rejection, ZERO_USD } from '#kernel';
import { type ChatBody, wantedOutput } from './chat-body.ts';
import { boundInputTokens } from './count-tokens.ts';

/** OpenAI accepts no lower limit for a response: below it, chat completions are called. */
export const LEAST_OUTPUT = 16;

/** The fewest tokens of output that an endpoint can be asked for. */
export function leastOutput({ speaks }: Pick<Endpoint, 'speaks'>): number {
  return speaks.includes('chat') ? 1 : LEAST_OUTPUT;
}

/** What a request may cost, before it is made. */
export interface Quote {
  readonly inputTokens: number;
  readonly choices: number;
  /** The caller's own limit of output tokens per choice, at most what the model makes. */
  readonly wanted: number | undefined;
  readonly atLeast: PicoUsd;
  readonly atMost: PicoUsd;
  /** The least that it costs to search, where the web may or must be searched for it in rounds. */
  readonly searching?: { readonly price: PicoUsd; readonly must: boolean };
  /** How much of it is held at first; all of it where this is left out. */
  readonly part?: PartialHold;
  /** Fees that are part of it, whatever the model does. */
  readonly fees: PicoUsd;
  /** The endpoints that may serve it: the quote covers each of them. */
  readonly endpoints: readonly Endpoint[];
}

const NOTHING_MORE = { inputTokens: 0, fees: ZERO_USD };

/** Input beside the messages. */
export function beside(inputTokens: number) {
  return inputTokens === 0 ? NOTHING_MORE : { inputTokens, fees: ZERO_USD };
}

/**
 * The maximum cost of a request; where the caller named no limit, at least the least output that there can be.
 * @param more what is added to the request before it is sent, what that costs by itself, and how often the model reads
 * all of it where that is more than once
 */
export function quoteFor(
  body: ChatBody,
  model: TokenPricedModel,
  endpoints: readonly Endpoint[],
  more: { readonly inputTokens: number; readonly fees: PicoUsd; readonly reads?: number } = NOTHING_MORE,
): Quote {
  const { fees, reads = 1 } = more;
  const inputTokens = Math.min(boundInputTokens(body, model) + more.inputTokens, model.context * reads);
  const choices = body.n ?? 1;
  const own = wantedOutput(body);
  const wanted = own === undefined ? undefined : Math.min(own, model.maxOutput);
  const asked = { inputTokens, choices, fees, endpoints };
  const atMost = priceWith(wanted ?? model.maxOutput, asked);
  const atLeast = wanted === undefined ? priceWith(leastOf(endpoints), asked) : atMost;
  return { ...asked, wanted, atLeast, atMost };
}

type PricedRequest = Pick<Quote, 'inputTokens' | 'choices' | 'fees' | 'endpoints'>;

/** The price of a request with so much output per choice, at most. */
export function priceWith(output: number, { inputTokens, choices, fees, endpoints }: PricedRequest): PicoUsd {
  const each = endpoints.map(({ tariff }) => dearest(inputTokens, output * choices, tariff));
  return money.add(fees, money.max(...each));
}

/**
 * What a request holds of what is available where that is more than its first part: of one that can be given more while
 * it is answered, little, so that others find something; of one that cannot, enough for a long answer.
 */
export const SHARE_IF_GROWING = 64n;
const SHARE_IF_FIXED = 8n;

/** What one request may hold of an amount where more cannot be held while it is answered. */
export function shareOfFixed(amount: PicoUsd): PicoUsd {
  return (amount / SHARE_IF_FIXED) as PicoUsd;
}

/**
 * The same for an answer that is not held in full: the caller names no limit, or one that is a habit and no intention.
 * @param first tokens of output per choice that are held for at first
 * @param grows whether more can be held while it is answered
 */
export function inParts(quote: Quote, first: number, grows: boolean): Quote {
  const { searching, endpoints, atMost, wanted: limit } = quote;
  const must = searching?.must ? searching.price : ZERO_USD;
  // Without a limit the least is what it was quoted with.
  const least = limit === undefined ? quote.atLeast : priceWith(leastOf(endpoints), quote);
  const atLeast = money.min(money.max(least, must), atMost);
  const wanted = money.max(priceWith(first, quote), searching?.price ?? ZERO_USD);
  const part = { first: money.min(wanted, atMost), share: grows ? SHARE_IF_GROWING : SHARE_IF_FIXED };
  return { ...quote, atLeast, part };
}

/** How many output tokens per choice an amount affords beside the input; negative when not even that. */
export function affordedOutput(amount: PicoUsd, { inputTokens, choices, fees, endpoints }: Quote): number {
  const left = money.subtract(amount, fees);
  const each = endpoints.map(({ tariff }) => affordableOutput(left, inputTokens, tariff));
  return Math.floor(Math.min(...each) / choices);
}

/** The most that a call can be sold for that has so many tokens at most. */
export function dearest(input: number, output: number, { prices }: Tariff): PicoUsd {
  return calculateMaxPrice({ input, output, request: 1 }, prices);
}

/** The most output tokens that an amount affords beside an input, at their dearest; negative when not even the input. */
export function affordableOutput(amount: PicoUsd, input: number, { prices }: Tariff): number {
  return countAffordableUnits(amount, { unit: 'output', beside: { input, request: 1 } }, prices);
}

/** A refusal for lack of money that also says what there is money for, what running requests hold, and what helps. */
export function nameWhatIsAfforded(error: unknown, quote: Quote): unknown {
  if (!(error instanceof Rejection) || error.details.affordable === undefined) return error;
  const { required = '', affordable, held } = error.details;
  const tokens = affordedOutput(parseUsd(affordable), quote);
  const enough =
    tokens >= leastOf(quote.endpoints) ? `enough for max_tokens up to ${tokens}` : 'not enough for this input';
  const needs = quote.part ? 'the request needs' : 'the request may cost';
  const there = `${needs} ${required} USD and ${affordable} USD is there, ${enough}`;
  const running =
    held === undefined
      ? ''
      : `; ${held} USD is held by running requests, and what they do not use is back when they end`;
  return error.restated(`${error.message}: ${there}${running}`, { affordable_tokens: String(Math.max(tokens, 0)) });
}

/** The fewest output tokens that an answer must be able to have, from any of these endpoints. */
function leastOf(endpoints: readonly Endpoint[]): number {
  return Math.max(...endpoints.map(leastOutput));
}
