/** What a chat may cost, with all that answering it needs. */
import type { Endpoint } from '#catalogue';
import type { CallLimits } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { CatalogueService } from '../../catalogue-service.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import type { ChatParams } from '../responses/chat-service.ts';
import {
  allowsTruncation,
  countMaxCarriedTokens,
  type NativeRequest,
  usesNativeResponses,
} from '../responses/native-request.ts';
import { countMaxPreSearchTokens } from '../search/results.ts';
import type { OutputLengthStats } from './output-length-stats.ts';
import { type ChatOrder, quoteChat, usesGatewaySearch, withPartialHold } from './quote-chat.ts';
import { truncateToFit } from './truncation.ts';

export class ChatQuoter {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly health: EndpointHealth,
    private readonly lengths: OutputLengthStats,
    private readonly limits: CallLimits,
  ) {}

  /** @throws InvalidRequestError for what does not exist or is not available */
  orderOf(payer: Payer, request: ChatParams, stream: boolean): ChatOrder | Promise<ChatOrder> {
    const { health, lengths, limits } = this;
    const { requestId, source, type, responses, created = Math.floor(Date.now() / 1000), limitDemanded } = request;
    const asked = quoteChat(request, this.catalogues.current, health, responses && countMaxCarriedTokens(responses));
    const { model } = asked.named;
    const upTo = limitDemanded ? 0 : limits.heldInFullTokens;
    const quoted = withPartialHold(asked, () => lengths.first(model.id, payer.id), upTo);
    const tokensPerSecond = (endpoint: Endpoint) =>
      health.of(model, endpoint).tokensPerSecond ?? endpoint.tokensPerSecond;
    const order = { ...quoted, requestId, source, type, responses, created, stream, lengths, tokensPerSecond };
    return responses && allowsTruncation(responses.body) ? cut(order, responses) : order;
  }
}

/** Truncates a conversation that is too long, for endpoints that do not do so themselves. */
async function cut(order: ChatOrder, responses: NativeRequest): Promise<ChatOrder> {
  const { quote, plan, body, named } = order;
  const isDoneThere = (endpoint: Endpoint) =>
    !usesGatewaySearch(plan) && usesNativeResponses(endpoint, responses, quote.wanted);
  if (quote.endpoints.every(isDoneThere)) return order;
  const more = plan?.kind === 'before' ? countMaxPreSearchTokens(plan) : 0;
  return { ...order, body: await truncateToFit(body, named.model, more) };
}
