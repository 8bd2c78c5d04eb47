/** What an answer with searches may cost. */
import type { Endpoint, TokenPricedModel } from '#catalogue';
import { calculatePrice, type Tariff } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { ChatBody } from '../chat/chat-body.ts';
import { type ChatQuote, calculateMaxCallPrice, quoteChatRequest, toExtraInput } from '../chat/chat-quote.ts';
import { countMaxChatInputTokens } from '../chat/count-tokens.ts';
import { countMaxPreSearchTokens, countMaxResultTokens } from './results.ts';
import type { NativeSearchPlan, SearchPlan, ToolSearchPlan } from './search-plan.ts';

/** Tokens for calling the tool, and for saying something of what it found: with less, a search is not worth its fee. */
const CALL_TOKENS = 128;
const RESPONSE_TOKENS = 256;
/** The declaration of the tool, and of an upstream's own, in tokens at most. */
const TOOL_TOKENS = 512;
/** What a search of an upstream's own adds to the input: it reads longer parts of pages than we give. */
const UPSTREAM_RESULT_TOKENS = 16_000;

/** What is asked, and the endpoints that may serve it. */
export interface SearchQuoteInput {
  readonly body: ChatBody;
  readonly model: TokenPricedModel;
  readonly endpoints: readonly Endpoint[];
  /** Tokens of input that only an upstream gets that is asked in Responses. */
  readonly extraInputTokens?: number;
}

/**
 * Searches that the model may or may not make are part of the most that is held, not of the least: a caller that has little
 * money gets an answer without them.
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
      const maxQuote = quoteNativeSearch(plan, plan.native.maxUses, input);
      const isRequired = plan.native.isRequired;
      const minPrice = quoteNativeSearch(plan, isRequired ? 1 : 0, input).minPrice;
      return {
        ...maxQuote,
        minPrice,
        search: { price: isRequired ? minPrice : quoteNativeSearch(plan, 1, input).minPrice, isRequired },
      };
    }
    case 'built_in':
      return quoteChatRequest(body, model, endpoints, toExtraInput(extraInputTokens));
  }
}

/** What an answer costs for which an upstream makes so many searches: it reads all that there is again after each. */
export function quoteNativeSearch(
  { fee }: Pick<NativeSearchPlan, 'fee'>,
  searches: number,
  { body, model, endpoints, extraInputTokens = 0 }: SearchQuoteInput,
): ChatQuote {
  if (searches === 0) return quoteChatRequest(body, model, endpoints, toExtraInput(extraInputTokens));
  const rereadTokens =
    searches * countMaxChatInputTokens(body, model) + (searches + 1) * extraInputTokens + (searches + 1) * TOOL_TOKENS;
  const results = (UPSTREAM_RESULT_TOKENS * searches * (searches + 1)) / 2;
  const extraInput = {
    inputTokens: rereadTokens + results,
    fees: calculateSearchPrice(fee, searches),
    reads: searches + 1,
  };
  return quoteChatRequest(body, model, endpoints, extraInput);
}

function quoteToolSearch(plan: ToolSearchPlan, { body, model, endpoints }: SearchQuoteInput): ChatQuote {
  const baseQuote = quoteChatRequest(body, model, endpoints);
  const output = baseQuote.requestedMaxTokens ?? model.maxOutput;
  const input = baseQuote.inputTokens + TOOL_TOKENS;
  const calculateMax = (cost: (endpoint: Endpoint) => PicoUsd) => money.max(...endpoints.map(cost));
  const maxPrice = calculateMax((endpoint) => {
    const rounds = Array.from({ length: plan.maxUses }, (_, before) =>
      calculateReadingPrice(plan, input + before * countMaxResultTokens(plan) + output, model, endpoint),
    );
    const responsePrice = calculateMaxCallPrice(Math.min(input, model.context), output, endpoint.tariff);
    return money.sum([...rounds, calculateSearchPrice(plan.fee, plan.maxUses), responsePrice]);
  });
  const minSearchPrice = calculateMax((endpoint) =>
    calculateMinSearchRoundPrice(plan, { input, output }, model, endpoint),
  );
  const minPrice = plan.isRequired ? money.max(baseQuote.minPrice, minSearchPrice) : baseQuote.minPrice;
  const searching = { price: minSearchPrice, isRequired: plan.isRequired };
  return { ...baseQuote, minPrice, maxPrice: money.max(maxPrice, minPrice), search: searching };
}

/** What so many searches are sold for. @param before how many the request has been charged for already */
export function calculateSearchPrice({ prices }: Tariff, search: number, before = 0): PicoUsd {
  return calculatePrice({ search, request: before === 0 && search > 0 ? 1 : 0 }, prices);
}

/** Reading what a search found together with `input` tokens of what was there before. */
function calculateReadingPrice(
  plan: ToolSearchPlan,
  input: number,
  model: TokenPricedModel,
  { tariff }: Endpoint,
): PicoUsd {
  return calculateMaxCallPrice(Math.min(input + countMaxResultTokens(plan), model.context), 0, tariff);
}

/** Tokens of a round at most. */
interface SearchTokens {
  readonly input: number;
  readonly output: number;
  /** Searches that are charged already. */
  readonly searches?: number;
}

/** The least that a call for a search, the search and a short answer cost. */
export function calculateMinSearchRoundPrice(
  plan: ToolSearchPlan,
  { input, output, searches = 0 }: SearchTokens,
  model: TokenPricedModel,
  endpoint: Endpoint,
): PicoUsd {
  const call = calculateMaxCallPrice(Math.min(input, model.context), Math.min(output, CALL_TOKENS), endpoint.tariff);
  const responsePrice = calculateMinResponsePrice(plan, { input: input + CALL_TOKENS, output }, model, endpoint);
  return money.sum([call, calculateSearchPrice(plan.fee, 1, searches), responsePrice]);
}

/** The least that a short answer costs that has the results of a search to read. */
export function calculateMinResponsePrice(
  plan: ToolSearchPlan,
  { input, output }: SearchTokens,
  model: TokenPricedModel,
  { tariff }: Endpoint,
): PicoUsd {
  const read = Math.min(input + countMaxResultTokens(plan), model.context);
  return calculateMaxCallPrice(read, Math.min(Math.max(output, 0), RESPONSE_TOKENS), tariff);
}
