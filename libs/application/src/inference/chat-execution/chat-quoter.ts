/** Creates the order of a chat: its quote, and everything that its execution requires. */
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

  /** @throws InvalidRequestError if the model or an option does not exist, is unavailable or is invalid */
  createOrder(payer: Payer, request: ChatParams, stream: boolean): ChatOrder | Promise<ChatOrder> {
    const { health, lengths, limits } = this;
    const { requestId, source, type, responses, created = Math.floor(Date.now() / 1000), isLimitRequired } = request;
    const chat = quoteChat(request, this.catalogues.current, health, responses && countMaxCarriedTokens(responses));
    const { model } = chat.resolved;
    const maxFullHoldTokens = isLimitRequired ? 0 : limits.heldInFullTokens;
    const quoted = withPartialHold(chat, () => lengths.getInitialTokens(model.id, payer.id), maxFullHoldTokens);
    const getTokensPerSecond = (endpoint: Endpoint) =>
      health.get(model, endpoint).tokensPerSecond ?? endpoint.tokensPerSecond;
    const order = { ...quoted, requestId, source, type, responses, created, stream, lengths, getTokensPerSecond };
    return responses && allowsTruncation(responses.body) ? truncateConversation(order, responses) : order;
  }
}

/** Truncates a conversation that is too long, unless the provider of every endpoint does so itself. */
async function truncateConversation(order: ChatOrder, responses: NativeRequest): Promise<ChatOrder> {
  const { quote, plan, body, resolved } = order;
  const isTruncatedUpstream = (endpoint: Endpoint) =>
    !usesGatewaySearch(plan) && usesNativeResponses(endpoint, responses, quote.requestedMaxTokens);
  if (quote.endpoints.every(isTruncatedUpstream)) return order;
  const extraInputTokens = plan?.kind === 'pre_search' ? countMaxPreSearchTokens(plan) : 0;
  return { ...order, body: await truncateToFit(body, resolved.model, extraInputTokens) };
}
