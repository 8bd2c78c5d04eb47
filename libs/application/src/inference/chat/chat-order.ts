/** A chat request with everything that was decided about it before money is held. */
import type { Endpoint } from '#catalogue';
import type { QueryType, Usage } from '#domain';
import type { Hold } from '../../paying/payer.ts';
import type { Sale } from '../../paying/sale.ts';
import type { NativeRequest } from '../responses/native-request.ts';
import type { ChatBody } from '../vocabulary/chat-body.ts';
import type { AnswerIdentity } from '../vocabulary/chat-upstream.ts';
import { countInputTokens, countTokens } from '../vocabulary/tokens.ts';
import type { QuotedChat } from './quoted-chat.ts';

export interface ChatOrder extends QuotedChat {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly type: QueryType;
  readonly stream: boolean;
  /** The same request for endpoints that speak Responses; their protocol is used only with it. */
  readonly responses?: NativeRequest | undefined;
}

export function saleOf({ requestId, named, type, source, online, quote, priceList }: ChatOrder): Sale {
  const { atLeast, atMost, endpoints } = quote;
  const query = { model: named.model.id, type, source, online, free: atMost === 0n };
  return { id: requestId, query, model: named.model, endpoints, priceList, atLeast, atMost };
}

/** The identity of an answer, from any endpoint. */
export function identityOf({ named }: ChatOrder, { holdId }: Hold): (endpoint: Endpoint) => AnswerIdentity {
  return ({ provider }) => ({ id: `gen-${holdId}`, model: named.model.id, provider });
}

/** The usage that no upstream reported, as an estimate. */
export async function counted(body: ChatBody, delivered: string): Promise<Usage> {
  const [input, output] = await Promise.all([countInputTokens(body), countTokens(delivered)]);
  return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}
