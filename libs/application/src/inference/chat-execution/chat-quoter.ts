/** What a chat may cost, with all that answering it needs. */
import type { Endpoint } from '#catalogue';
import type { CallLimits } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Catalogues } from '../../catalogue-service.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import type { ChatRequest } from '../responses/chat-service.ts';
import { boundCarried, isAskedNatively, type NativeRequest, truncates } from '../responses/native-request.ts';
import { boundTokensBefore } from '../search/results.ts';
import type { AnswerLengths } from './output-length-stats.ts';
import { type ChatOrder, heldInParts, isOurs, quotedChat } from './quote-chat.ts';
import { fitting } from './truncation.ts';

export class ChatQuotes {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly health: EndpointHealth,
    private readonly lengths: AnswerLengths,
    private readonly limits: CallLimits,
  ) {}

  /** @throws UnservableRequest for what does not exist or is not available */
  orderOf(payer: Payer, request: ChatRequest, stream: boolean): ChatOrder | Promise<ChatOrder> {
    const { health, lengths, limits } = this;
    const { requestId, source, type, responses, created = Math.floor(Date.now() / 1000), limitDemanded } = request;
    const asked = quotedChat(request, this.catalogues.current, health, responses && boundCarried(responses));
    const { model } = asked.named;
    const upTo = limitDemanded ? 0 : limits.heldInFullTokens;
    const quoted = heldInParts(asked, () => lengths.first(model.id, payer.id), upTo);
    const tokensPerSecond = (endpoint: Endpoint) =>
      health.of(model, endpoint).tokensPerSecond ?? endpoint.tokensPerSecond;
    const order = { ...quoted, requestId, source, type, responses, created, stream, lengths, tokensPerSecond };
    return responses && truncates(responses.body) ? cut(order, responses) : order;
  }
}

/** Truncates a conversation that is too long, for endpoints that do not do so themselves. */
async function cut(order: ChatOrder, responses: NativeRequest): Promise<ChatOrder> {
  const { quote, plan, body, named } = order;
  const isDoneThere = (endpoint: Endpoint) => !isOurs(plan) && isAskedNatively(endpoint, responses, quote.wanted);
  if (quote.endpoints.every(isDoneThere)) return order;
  const more = plan?.kind === 'before' ? boundTokensBefore(plan) : 0;
  return { ...order, body: await fitting(body, named.model, more) };
}
