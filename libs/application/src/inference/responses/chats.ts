/** The port through which a response has its chat answered. */
import type { QueryType } from '#domain';
import type { Payer } from '../../paying/payer.ts';
import type { AnswerClient, WholeChat } from '../vocabulary/answers.ts';
import type { ChatBody } from '../vocabulary/chat-body.ts';
import type { NativeRequest } from './native-request.ts';

/** What is asked, whatever the shape it was asked in. */
export interface ChatRequest {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly body: ChatBody;
  readonly type: QueryType;
  /** The same request for endpoints that speak Responses; an answer in their words is asked for only with it. */
  readonly responses?: NativeRequest;
}

export abstract class Chats {
  /** Answers a chat: in one piece, or to a client that takes it as it is made; then nothing is returned. */
  abstract complete(payer: Payer, request: ChatRequest, client?: AnswerClient): Promise<WholeChat | undefined>;
}
