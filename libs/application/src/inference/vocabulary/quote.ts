import type { Endpoint, Model } from '#catalogue';
import { affordable, boundOf, type Tariff } from '#domain';
import { money, type PicoUsd, Rejection, usd, ZERO } from '#kernel';
import { type ChatBody, wantedOutput } from './chat-body.ts';
import { boundInputTokens } from './tokens.ts';

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
  /** Fees that are part of it, whatever the model does. */
  readonly fees: PicoUsd;
  /** The endpoints that may serve it: the quote covers each of them. */
  readonly endpoints: readonly Endpoint[];
}

const NOTHING_MORE = { inputTokens: 0, fees: ZERO };

/** Input beside the messages. */
export function beside(inputTokens: number) {
  return inputTokens === 0 ? NOTHING_MORE : { inputTokens, fees: ZERO };
}

/**
 * The maximum cost of a request; where the caller named no limit, at least the least output that there can be.
 * @param more what is added to the request before it is sent, what that costs by itself, and how often the model reads
 * all of it where that is more than once
 */
export function quoteFor(
  body: ChatBody,
  model: Model,
  endpoints: readonly Endpoint[],
  more: { readonly inputTokens: number; readonly fees: PicoUsd; readonly reads?: number } = NOTHING_MORE,
): Quote {
  const { fees, reads = 1 } = more;
  const inputTokens = Math.min(boundInputTokens(body, model) + more.inputTokens, model.context * reads);
  const choices = body.n ?? 1;
  const own = wantedOutput(body);
  const wanted = own === undefined ? undefined : Math.min(own, model.maxOutput);
  const dearestFor = (output: number) =>
    money.add(fees, money.most(...endpoints.map(({ tariff }) => dearest(inputTokens, output, tariff))));
  const atMost = dearestFor((wanted ?? model.maxOutput) * choices);
  const atLeast = wanted === undefined ? dearestFor(leastOf(endpoints) * choices) : atMost;
  return { inputTokens, choices, wanted, atLeast, atMost, fees, endpoints };
}

/** How many output tokens per choice an amount affords beside the input; negative when not even that. */
export function affordedOutput(amount: PicoUsd, { inputTokens, choices, fees, endpoints }: Quote): number {
  const left = money.subtract(amount, fees);
  const each = endpoints.map(({ tariff }) => affordableOutput(left, inputTokens, tariff));
  return Math.floor(Math.min(...each) / choices);
}

/** The most that a call can be sold for that has so many tokens at most. */
export function dearest(input: number, output: number, { prices }: Tariff): PicoUsd {
  return boundOf({ input, output, request: 1 }, prices);
}

/** The most output tokens that an amount affords beside an input, at their dearest; negative when not even the input. */
export function affordableOutput(amount: PicoUsd, input: number, { prices }: Tariff): number {
  return affordable(amount, { unit: 'output', beside: { input, request: 1 } }, prices);
}

/** A refusal for lack of money that also says how many tokens there is money for. */
export function nameWhatIsAfforded(error: unknown, quote: Quote): unknown {
  if (!(error instanceof Rejection) || error.details.affordable === undefined) return error;
  const { required = '', affordable } = error.details;
  const tokens = affordedOutput(usd(affordable), quote);
  const enough =
    tokens >= leastOf(quote.endpoints) ? `enough for max_tokens up to ${tokens}` : 'not enough for this input';
  const message = `${error.message}: the request may cost ${required} USD and ${affordable} USD is there, ${enough}`;
  return error.restated(message, { affordable_tokens: String(Math.max(tokens, 0)) });
}

/** The fewest output tokens that an answer must be able to have, from any of these endpoints. */
function leastOf(endpoints: readonly Endpoint[]): number {
  return Math.max(...endpoints.map(leastOutput));
}
