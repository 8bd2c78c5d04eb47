/** One response: the conversation it continues → the chat that it means → the response that is kept. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { ResponsesBody } from './body.ts';
import { ChatService } from './chat-service.ts';
import { toCompactedConversation } from './compaction.ts';
import { ConversationService, type StoredResponseReader } from './conversations.ts';
import { type LoadedResponseRequest, ResponseRequestLoader } from './request-loader.ts';
import { ResponseBuilder, type ResponseJson } from './response-builder.ts';
import { type ResponseEventOutput, ResponseWriter } from './response-writer.ts';

export interface CreateResponseParams {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  /** Of the account whose conversations it may continue. */
  readonly reader: StoredResponseReader;
  readonly audience: ClientConnection;
  readonly body: ResponsesBody;
  /** What is answered: the response, or what a conversation goes on from that it has compacted. */
  readonly as?: 'compaction';
}

/** Makes a response. Returns its JSON, or sends its events as they come and returns nothing. */
export class CreateResponse extends Command<string | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: CreateResponseParams,
    readonly outlet?: ResponseEventOutput,
  ) {
    super();
  }
}

/** A response that has been made, and the provider that made it. */
interface Made {
  readonly draft: ResponseBuilder;
  readonly response: ResponseJson;
  readonly provider: string;
}

@CommandHandler(CreateResponse)
export class CreateResponseHandler implements ICommandHandler<CreateResponse> {
  constructor(
    private readonly chats: ChatService,
    private readonly reading: ResponseRequestLoader,
    private readonly conversations: ConversationService,
  ) {}

  async execute({ payer, request, outlet }: CreateResponse): Promise<string | undefined> {
    const { requestId, source, reader, audience, body, as } = request;
    const { accountId } = reader;
    const understood = await this.reading.understood(reader, body);
    // Who does not ask for it is told by the answer that it is not kept.
    if (body.store) await this.conversations.assertRoom(accountId);
    const draft = new ResponseBuilder(requestId, understood);
    const kept = (response: ResponseJson, provider: string) =>
      this.kept(accountId, understood, { draft, response, provider });
    const { chat, native } = understood;
    const whole = await this.chats.complete(
      payer,
      { requestId, source, audience, body: chat, type: 'response', responses: native },
      outlet && new ResponseWriter(outlet, draft, kept),
    );
    if (!whole) return undefined;
    draft.answeredBy(whole);
    for (const search of whole.searches) draft.search(search);
    draft.accept(whole.body);
    draft.end();
    if (as === 'compaction') return JSON.stringify(draft.compacted(whole.receipt));
    return JSON.stringify(await kept(draft.finished(whole.receipt), whole.provider));
  }

  /** The response as it is answered, after the attempt to store it. It is charged by then in any case. */
  private async kept(accountId: string, request: LoadedResponseRequest, made: Made): Promise<ResponseJson> {
    const { draft, response, provider } = made;
    if (!request.store) return response;
    const answered = draft.kept(provider);
    const items = request.compacts ? toCompactedConversation(request.said, answered) : [...request.said, ...answered];
    const conversation = { items, response: JSON.stringify(response) };
    const { recalled } = request;
    const kept = await this.conversations.keep({ accountId, id: draft.id, conversation, answered, recalled });
    return kept ? response : { ...response, store: false };
  }
}
