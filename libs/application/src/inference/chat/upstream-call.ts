import type { Endpoint } from '#catalogue';
import type { Purchase } from '../../paying/purchase.ts';
import { answerOfVariant } from '../../routing/passed-on.ts';
import { isAskedNatively, responsesBody } from '../responses/native-request.ts';
import { type ChatBody, upstreamBody } from '../vocabulary/chat-body.ts';
import type { StreamedAnswer, WholeAnswer } from '../vocabulary/chat-upstream.ts';
import type { Providers } from '../vocabulary/providers.ts';
import type { NativeSearch } from '../vocabulary/searching.ts';
import { type ChatOrder, identityOf } from './chat-order.ts';
import { isOurs } from './quoted-chat.ts';

/** Calls one endpoint, in its best protocol. */
export type AskUpstream = (
  endpoint: Endpoint,
  body: ChatBody,
  limit: number | undefined,
) => Promise<WholeAnswer | StreamedAnswer>;

/** @param search what the upstream is to search for by itself */
export function upstreamCall(
  order: ChatOrder,
  { hold, signal }: Purchase,
  providers: Providers,
  search?: NativeSearch,
): AskUpstream {
  const { named, reasoning, plan, responses, stream } = order;
  const identity = identityOf(order, hold);
  return (endpoint, body, limit) => {
    const { upstream, speaks } = endpoint;
    const target = { ...endpoint, model: endpoint.model + named.passedOn };
    const natively = responses !== undefined && !isOurs(plan) && isAskedNatively(endpoint, responses, limit);
    const language = natively ? 'responses' : 'chat';
    const ask = providers.of(hold, upstream, language);
    const answer = ask({
      language,
      speaks,
      body: natively
        ? responsesBody(responses, target, limit, reasoning)
        : upstreamBody(body, target, limit, reasoning),
      stream,
      withoutReasoning: reasoning?.exclude === true,
      identity: identity(endpoint),
      search,
      signal,
    });
    return answerOfVariant(named, answer);
  };
}
