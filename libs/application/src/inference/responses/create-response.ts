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
  readonly connection: ClientConnection;
  readonly body: ResponsesBody;
  /** What is answered: the response, or what a conversation goes on from that it has compacted. */
  readonly resultFormat?: 'compaction';
}

/** Makes a response. Returns its JSON, or sends its events as they come and returns nothing. */
export class CreateResponse extends Command<string | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: CreateResponseParams,
    readonly output?: ResponseEventOutput,
  ) {
    super();
  }
}

/** A response that has been made, and the provider that made it. */
interface CreatedResponse {
  readonly draft: ResponseBuilder;
  readonly response: ResponseJson;
  readonly provider: string;
}

@CommandHandler(CreateResponse)
export class CreateResponseHandler implements ICommandHandler<CreateResponse> {
  constructor(
    private readonly chats: ChatService,
    private readonly requestLoader: ResponseRequestLoader,
    private readonly conversations: ConversationService,
  ) {}

  async execute({ payer, request, output }: CreateResponse): Promise<string | undefined> {
    const { requestId, source, reader, connection, body, resultFormat } = request;
    const { accountId } = reader;
    const loaded = await this.requestLoader.load(reader, body);
    // Who does not ask for it is told by the answer that it is not kept.
    if (body.store) await this.conversations.assertWithinQuota(accountId);
    const draft = new ResponseBuilder(requestId, loaded);
    const store = (response: ResponseJson, provider: string) =>
      this.storeResponse(accountId, loaded, { draft, response, provider });
    const { chat, native } = loaded;
    const completion = await this.chats.complete(
      payer,
      { requestId, source, connection, body: chat, type: 'response', responses: native },
      output && new ResponseWriter(output, draft, store),
    );
    if (!completion) return undefined;
    draft.setSource(completion);
    for (const search of completion.searches) draft.recordSearch(search);
    draft.accept(completion.body);
    draft.end();
    if (resultFormat === 'compaction') return JSON.stringify(draft.buildCompaction(completion.receipt));
    return JSON.stringify(await store(draft.build(completion.receipt), completion.provider));
  }

  /** The response as it is answered, after the attempt to store it. It is charged by then in any case. */
  private async storeResponse(
    accountId: string,
    request: LoadedResponseRequest,
    created: CreatedResponse,
  ): Promise<ResponseJson> {
    const { draft, response, provider } = created;
    if (!request.store) return response;
    const outputItems = draft.getRetainedItems(provider);
    const items = request.isCompaction
      ? toCompactedConversation(request.inputItems, outputItems)
      : [...request.inputItems, ...outputItems];
    const conversation = { items, response: JSON.stringify(response) };
    const { loadedConversations } = request;
    const isStored = await this.conversations.store({
      accountId,
      id: draft.id,
      conversation,
      outputItems,
      loadedConversations,
    });
    return isStored ? response : { ...response, store: false };
  }
}
