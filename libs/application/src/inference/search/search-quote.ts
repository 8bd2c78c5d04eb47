/** Quotes requests with web searches. */
import type { Endpoint, TokenPricedModel } from '#catalogue';
import { calculatePrice, type Tariff } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { ChatBody } from '../chat/chat-body.ts';
import {
  type ChatQuote,
  calculateMaxCallPrice,
  type InputUnit,
  quoteChatRequest,
  toExtraInput,
} from '../chat/chat-quote.ts';
import { countMaxChatInputTokens } from '../chat/count-tokens.ts';
import { countMaxPreSearchTokens, countMaxResultTokens } from './results.ts';
import type { NativeSearchPlan, SearchPlan, ToolSearchPlan } from './search-plan.ts';

/** Output tokens of a search call. No search is made if the hold does not pay for the call and a response. */
const CALL_TOKENS = 128;
/** Output tokens of a response that uses the results of a search. */
export const RESPONSE_TOKENS = 256;
/** Maximum tokens of the declaration of the search tool, whether the gateway or the provider adds it. */
const TOOL_TOKENS = 512;
/** Maximum input tokens that a native search adds: providers include longer parts of pages than the gateway. */
const UPSTREAM_RESULT_TOKENS = 16_000;

/** The request, and the endpoints that may serve it. */
export interface SearchQuoteInput {
  readonly body: ChatBody;
  readonly model: TokenPricedModel;
  readonly endpoints: readonly Endpoint[];
  /** Maximum input tokens that only the Responses API gets, in addition to those of the messages. */
  readonly extraInputTokens?: number;
}

/**
 * Quotes a request with its search plan. Optional searches are part of the maximum price but not of the minimum price:
 * a caller with little money gets a completion without them.
 */
export function quoteSearch(plan: SearchPlan, input: SearchQuoteInput): ChatQuote {
  const { body, model, endpoints, extraInputTokens = 0 } = input;
  switch (plan.kind) {
    case 'pre_search': {
      const extraInput = { inputTokens: countMaxPreSearchTokens(plan), fees: calculateSearchPrice(plan.fee, 1) };
      return quoteChatRequest(body, model, endpoints, extraInput);
    }
    case 'tool':
      return quoteToolSearch(plan, input);
    case 'upstream': {
      const { isRequired, maxUses } = plan.native;
      const price = quoteNativeSearch(plan, plan.minUses, input).minPrice;
      const minPrice = isRequired ? price : quoteNativeSearch(plan, 0, input).minPrice;
      return { ...quoteNativeSearch(plan, maxUses, input), minPrice, search: { price, isRequired } };
    }
    case 'built_in':
      return quoteChatRequest(body, model, endpoints, toExtraInput(extraInputTokens));
  }
}

/**
 * Quotes a request with this number of native searches. After each search the model reads the complete input again,
 * which most providers bill.
 */
export function quoteNativeSearch(
  { fee, billsInput }: Pick<NativeSearchPlan, 'fee' | 'billsInput'>,
  searches: number,
  { body, model, endpoints, extraInputTokens = 0 }: SearchQuoteInput,
): ChatQuote {
  if (searches === 0) return quoteChatRequest(body, model, endpoints, toExtraInput(extraInputTokens));
  const rereads = billsInput ? searches : 0;
  const reads = rereads + 1;
  const rereadTokens = rereads * countMaxChatInputTokens(body, model) + reads * (extraInputTokens + TOOL_TOKENS);
  const results = (UPSTREAM_RESULT_TOKENS * rereads * reads) / 2;
  const extraInput = { inputTokens: rereadTokens + results, fees: calculateSearchPrice(fee, searches), reads };
  return quoteChatRequest(body, model, endpoints, extraInput);
}

function quoteToolSearch(plan: ToolSearchPlan, { body, model, endpoints }: SearchQuoteInput): ChatQuote {
  const baseQuote = quoteChatRequest(body, model, endpoints);
  const output = baseQuote.requestedMaxTokens ?? model.maxOutput;
  const input = baseQuote.inputTokens + TOOL_TOKENS;
  const { inputUnit } = baseQuote;
  const calculateMax = (cost: (endpoint: Endpoint) => PicoUsd) => money.max(...endpoints.map(cost));
  const maxPrice = calculateMax((endpoint) => {
    const rounds = Array.from({ length: plan.maxUses }, (_, before) =>
      calculateReadingPrice(
        plan,
        { input: input + before * countMaxResultTokens(plan) + output, inputUnit, output: 0 },
        model,
        endpoint,
      ),
    );
    const responsePrice = calculateMaxCallPrice(Math.min(input, model.context), output, endpoint.tariff, inputUnit);
    return money.sum([...rounds, calculateSearchPrice(plan.fee, plan.maxUses), responsePrice]);
  });
  const minSearchPrice = calculateMax((endpoint) =>
    calculateMinSearchRoundPrice(plan, { input, inputUnit, output }, model, endpoint),
  );
  const minPrice = plan.isRequired ? money.max(baseQuote.minPrice, minSearchPrice) : baseQuote.minPrice;
  const searching = { price: minSearchPrice, isRequired: plan.isRequired };
  return { ...baseQuote, minPrice, maxPrice: money.max(maxPrice, minPrice), search: searching };
}

/** Calculates the price of searches. @param before number of searches that the request was already charged for */
export function calculateSearchPrice({ prices }: Tariff, search: number, before = 0): PicoUsd {
  return calculatePrice({ search, request: before === 0 && search > 0 ? 1 : 0 }, prices);
}

/** Calculates the maximum price of a call that reads the results of one search together with `input` earlier tokens. */
function calculateReadingPrice(
  plan: ToolSearchPlan,
  { input, inputUnit, output }: SearchTokens,
  model: TokenPricedModel,
  { tariff }: Endpoint,
): PicoUsd {
  const read = Math.min(input + countMaxResultTokens(plan), model.context);
  return calculateMaxCallPrice(read, output, tariff, inputUnit);
}

/** Maximum tokens of a round. */
interface SearchTokens {
  readonly input: number;
  readonly inputUnit: InputUnit;
  readonly output: number;
  /** Number of searches that are already charged. */
  readonly searches?: number;
}

/** Calculates the minimum price of a tool call, its search and a short response. */
export function calculateMinSearchRoundPrice(
  plan: ToolSearchPlan,
  { input, inputUnit, output, searches = 0 }: SearchTokens,
  model: TokenPricedModel,
  endpoint: Endpoint,
): PicoUsd {
  const read = Math.min(input, model.context);
  const call = calculateMaxCallPrice(read, Math.min(output, CALL_TOKENS), endpoint.tariff, inputUnit);
  const tokens = { input: input + CALL_TOKENS, inputUnit, output };
  const responsePrice = calculateMinResponsePrice(plan, tokens, model, endpoint);
  return money.sum([call, calculateSearchPrice(plan.fee, 1, searches), responsePrice]);
}

/** Calculates the minimum price of a short response that reads the results of a search. */
export function calculateMinResponsePrice(
  plan: ToolSearchPlan,
  { output, ...input }: SearchTokens,
  model: TokenPricedModel,
  endpoint: Endpoint,
): PicoUsd {
  const tokens = { ...input, output: Math.min(Math.max(output, 0), RESPONSE_TOKENS) };
  return calculateReadingPrice(plan, tokens, model, endpoint);
}
