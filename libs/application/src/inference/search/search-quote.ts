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
const ANSWER_TOKENS = 256;
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
  readonly carried?: number;
}

/**
 * Searches that the model may or may not make are part of the most that is held, not of the least: a caller that has little
 * money gets an answer without them.
 */
export function quoteSearch(plan: SearchPlan, asked: SearchQuoteInput): ChatQuote {
  const { body, model, endpoints, carried = 0 } = asked;
  switch (plan.kind) {
    case 'before': {
      const more = { inputTokens: countMaxPreSearchTokens(plan), fees: calculateSearchPrice(plan.fee, 1) };
      return quoteChatRequest(body, model, endpoints, more);
    }
    case 'tool':
      return quoteForTool(plan, asked);
    case 'upstream': {
      const most = quoteNativeSearch(plan, plan.native.maxUses, asked);
      const must = plan.native.first;
      const atLeast = quoteNativeSearch(plan, must ? 1 : 0, asked).atLeast;
      return {
        ...most,
        atLeast,
        searching: { price: must ? atLeast : quoteNativeSearch(plan, 1, asked).atLeast, must },
      };
    }
    case 'anyway':
      return quoteChatRequest(body, model, endpoints, toExtraInput(carried));
  }
}

/** What an answer costs for which an upstream makes so many searches: it reads all that there is again after each. */
export function quoteNativeSearch(
  { fee }: Pick<NativeSearchPlan, 'fee'>,
  searches: number,
  { body, model, endpoints, carried = 0 }: SearchQuoteInput,
): ChatQuote {
  if (searches === 0) return quoteChatRequest(body, model, endpoints, toExtraInput(carried));
  const again =
    searches * countMaxChatInputTokens(body, model) + (searches + 1) * carried + (searches + 1) * TOOL_TOKENS;
  const results = (UPSTREAM_RESULT_TOKENS * searches * (searches + 1)) / 2;
  const more = { inputTokens: again + results, fees: calculateSearchPrice(fee, searches), reads: searches + 1 };
  return quoteChatRequest(body, model, endpoints, more);
}

function quoteForTool(plan: ToolSearchPlan, { body, model, endpoints }: SearchQuoteInput): ChatQuote {
  const plain = quoteChatRequest(body, model, endpoints);
  const output = plain.wanted ?? model.maxOutput;
  const input = plain.inputTokens + TOOL_TOKENS;
  const mostOf = (cost: (endpoint: Endpoint) => PicoUsd) => money.max(...endpoints.map(cost));
  const atMost = mostOf((endpoint) => {
    const rounds = Array.from({ length: plan.maxUses }, (_, before) =>
      readingRound(plan, input + before * countMaxResultTokens(plan) + output, model, endpoint),
    );
    const answer = calculateMaxCallPrice(Math.min(input, model.context), output, endpoint.tariff);
    return money.sum([...rounds, calculateSearchPrice(plan.fee, plan.maxUses), answer]);
  });
  const must = mostOf((endpoint) => calculateMinSearchRoundPrice(plan, { input, output }, model, endpoint));
  const atLeast = plan.first ? money.max(plain.atLeast, must) : plain.atLeast;
  const searching = { price: must, must: plan.first };
  return { ...plain, atLeast, atMost: money.max(atMost, atLeast), searching };
}

/** What so many searches are sold for. @param before how many the request has been charged for already */
export function calculateSearchPrice({ prices }: Tariff, search: number, before = 0): PicoUsd {
  return calculatePrice({ search, request: before === 0 && search > 0 ? 1 : 0 }, prices);
}

/** Reading what a search found together with `input` tokens of what was there before. */
function readingRound(plan: ToolSearchPlan, input: number, model: TokenPricedModel, { tariff }: Endpoint): PicoUsd {
  return calculateMaxCallPrice(Math.min(input + countMaxResultTokens(plan), model.context), 0, tariff);
}

/** Tokens of a round at most. */
interface Tokens {
  readonly input: number;
  readonly output: number;
  /** Searches that are charged already. */
  readonly searches?: number;
}

/** The least that a call for a search, the search and a short answer cost. */
export function calculateMinSearchRoundPrice(
  plan: ToolSearchPlan,
  { input, output, searches = 0 }: Tokens,
  model: TokenPricedModel,
  endpoint: Endpoint,
): PicoUsd {
  const call = calculateMaxCallPrice(Math.min(input, model.context), Math.min(output, CALL_TOKENS), endpoint.tariff);
  const answer = calculateMinResponsePrice(plan, { input: input + CALL_TOKENS, output }, model, endpoint);
  return money.sum([call, calculateSearchPrice(plan.fee, 1, searches), answer]);
}

/** The least that a short answer costs that has the results of a search to read. */
export function calculateMinResponsePrice(
  plan: ToolSearchPlan,
  { input, output }: Tokens,
  model: TokenPricedModel,
  { tariff }: Endpoint,
): PicoUsd {
  const read = Math.min(input + countMaxResultTokens(plan), model.context);
  return calculateMaxCallPrice(read, Math.min(Math.max(output, 0), ANSWER_TOKENS), tariff);
}
