/** The port through which a response has its chat answered. */
import type { QueryType } from '#domain';
import type { ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import type { BilledCompletion, CompletionWriter } from '../chat/completion-writer.ts';
import type { NativeRequest } from './native-request.ts';

/** The request, in whichever shape it came. */
export interface ChatParams {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly body: ChatBody;
  readonly type: QueryType;
  /** Unix seconds that the answer shows, where its client writes events of its own beside it; now, where it does not. */
  readonly created?: number | undefined;
  /** The protocol demands a limit of output: it bounds the answer, and says nothing of how long that will be. */
  readonly isLimitRequired?: boolean;
  /** Who waits for an answer in one piece. */
  readonly connection: ClientConnection;
  /** The same request for endpoints that speak Responses; their protocol is used only with it. */
  readonly responses?: NativeRequest;
}

export abstract class ChatService {
  /** Answers a chat: whole, or as a stream to a client; then nothing is returned. */
  abstract complete(
    payer: Payer,
    request: ChatParams,
    client?: CompletionWriter,
  ): Promise<BilledCompletion | undefined>;
}
