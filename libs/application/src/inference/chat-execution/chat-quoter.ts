/** Creates the order of a chat: its quote, and everything that its execution requires. */
import type { Endpoint } from '#catalogue';
import type { BillingEngine, CallLimits } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { CatalogueService } from '../../catalogue-service.ts';
import type { Clock } from '../../clock.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import { selectModels } from '../../routing/model-list.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';
import type { ChatParams } from '../responses/chat-service.ts';
import {
  allowsTruncation,
  countMaxCarriedTokens,
  type NativeRequest,
  usesNativeResponses,
} from '../responses/native-request.ts';
import { countMaxPreSearchTokens } from '../search/results.ts';
import type { PreSearchPlan } from '../search/search-plan.ts';
import { type ChatOrders, combineOrders } from './model-orders.ts';
import type { OutputLengthStats } from './output-length-stats.ts';
import { type ChatOrder, quoteChat, usesGatewaySearch, withPartialHold } from './quote-chat.ts';
import { type CountTexts, truncateToFit } from './truncation.ts';

export interface ChatQuoterDependencies {
  readonly catalogues: CatalogueService;
  readonly health: EndpointHealth;
  readonly lengths: OutputLengthStats;
  readonly limits: CallLimits;
  readonly billing: Pick<BillingEngine, 'assertAffordable'>;
  readonly tokenCounter: TokenCounter;
  readonly clock: Clock;
}

export class ChatQuoter {
  constructor(private readonly dependencies: ChatQuoterDependencies) {}

  /**
   * Creates an order for each model that can serve the request.
   * @throws InvalidRequestError if no model can, or an option does not exist, is unavailable or is invalid
   */
  createOrders(payer: Payer, request: ChatParams, stream: boolean): ChatOrders {
    let preSearch: PreSearchPlan | undefined;
    return selectModels(request.body, (model) => {
      const { models, ...fields } = request.body;
      const body = models ? { ...fields, model } : request.body;
      const order = this.createOrder(payer, { ...request, body }, stream, preSearch);
      if (order.plan?.kind === 'pre_search') preSearch = order.plan;
      return order;
    });
  }

  private createOrder(payer: Payer, request: ChatParams, stream: boolean, preSearch?: PreSearchPlan): ChatOrder {
    const { catalogues, health, lengths, limits, clock } = this.dependencies;
    const { requestId, source, type, responses, isLimitRequired } = request;
    const { created = Math.floor(clock.nowMs() / 1000) } = request;
    const chat = quoteChat({ ...request, payerId: payer.id }, catalogues.current, health, {
      extraInputTokens: responses && countMaxCarriedTokens(responses),
      preSearch,
    });
    const { model } = chat.resolved;
    const addPartialHold = () =>
      withPartialHold(chat, {
        getLengths: () => lengths.getLengths(model, payer.id),
        getMaxTokensPerSecond: (endpoint) => health.getMaxTokensPerSecond(model, endpoint),
        maxFullHoldTokens: isLimitRequired ? 0 : limits.heldInFullTokens,
      });
    const quoted = addPartialHold();
    const updatePartialHold = () => addPartialHold().quote.partialHold;
    const getTokensPerSecond = (endpoint: Endpoint) =>
      health.get(model, endpoint).tokensPerSecond ?? endpoint.tokensPerSecond;
    return {
      ...quoted,
      requestId,
      source,
      type,
      responses,
      created,
      stream,
      lengths,
      getTokensPerSecond,
      updatePartialHold,
    };
  }

  /**
   * Truncates a conversation that is too long for a model, if the request allows it. Its tokens are counted only for a
   * payer who can pay for them.
   * @throws errors of `Payer.assertAffordable`; UpstreamError with `not_served` if too much waits to be counted
   */
  async truncate(payer: Payer, orders: ChatOrders): Promise<ChatOrders> {
    const { responses } = orders[0];
    if (!responses || !allowsTruncation(responses.body)) return orders;
    const truncated: ChatOrder[] = [];
    for (const order of orders)
      truncated.push(
        await truncateConversation(order, responses, async (texts) => {
          await this.dependencies.billing.assertAffordable(payer, combineOrders(orders));
          return this.dependencies.tokenCounter.countEach(payer.id, texts);
        }),
      );
    return truncated as unknown as ChatOrders;
  }
}

/** Truncates a conversation that is too long, unless the provider of every endpoint does so itself. */
async function truncateConversation(
  order: ChatOrder,
  responses: NativeRequest,
  countEach: CountTexts,
): Promise<ChatOrder> {
  const { quote, plan, body, resolved } = order;
  const isTruncatedUpstream = (endpoint: Endpoint) =>
    !usesGatewaySearch(plan) && usesNativeResponses(endpoint, responses, quote.requestedMaxTokens);
  if (quote.endpoints.every(isTruncatedUpstream)) return order;
  const extraInputTokens = plan?.kind === 'pre_search' ? countMaxPreSearchTokens(plan) : 0;
  return { ...order, body: await truncateToFit(body, resolved.model, countEach, extraInputTokens) };
}
