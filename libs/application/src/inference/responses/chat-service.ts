/** Completes chats for all protocols, such as Anthropic's Messages API and OpenAI's Responses API. */
import type { QueryType } from '#domain';
import type { ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import type { BilledCompletion, CompletionWriter } from '../chat/completion-writer.ts';
import type { NativeRequest } from './native-request.ts';

/** The connection of the client that sent a chat. */
export interface ChatConnection extends ClientConnection {
  /** Called before the response of a model starts: whether the model is free and ignores the request's web search. */
  reportIgnoredSearch(isIgnored: boolean): void;
  /**
   * Reserves memory for what is fetched for the request, until its response has been sent.
   * @throws Error if the process has no more memory for requests of the caller
   */
  reserveMemory(bytes: number): Promise<void>;
}

/** A chat request, converted from any of the protocols. */
export interface ChatParams {
  readonly requestId: string;
  /** The origin of the request, as displayed in the query history. */
  readonly source: string;
  readonly body: ChatBody;
  readonly type: QueryType;
  /** Unix seconds at which the completion was created, for writers that also send their own events; defaults to now. */
  readonly created?: number | undefined;
  /** The protocol requires an output limit, so the limit does not indicate the expected length of the completion. */
  readonly isLimitRequired?: boolean;
  readonly connection: ChatConnection;
  /** The original request, for endpoints with the Responses API. Without it, every endpoint gets `body`. */
  readonly responses?: NativeRequest;
}

export abstract class ChatService {
  /** Completes a chat. With a client the completion is streamed to it and the result is undefined. */
  abstract complete(
    payer: Payer,
    request: ChatParams,
    client?: CompletionWriter,
  ): Promise<BilledCompletion | undefined>;
}
