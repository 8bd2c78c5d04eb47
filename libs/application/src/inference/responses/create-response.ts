/** Creates a response: loads the conversation that it continues, completes the chat, and may store the response. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Payer } from '../../billing/payer.ts';
import { Clock } from '../../clock.ts';
import type { ResponsesBody } from './body.ts';
import { type ChatConnection, ChatService } from './chat-service.ts';
import { toCompactedConversation } from './compaction.ts';
import { ConversationService, type StoredResponseReader } from './conversations.ts';
import { type LoadedResponseRequest, ResponseRequestLoader } from './request-loader.ts';
import { ResponseBuilder, type ResponseJson } from './response-builder.ts';
import { type ResponseEventOutput, ResponseWriter } from './response-writer.ts';

export interface CreateResponseParams {
  readonly requestId: string;
  /** The origin of the request, as displayed in the query history. */
  readonly source: string;
  /** The account whose stored conversations the request may continue. */
  readonly reader: StoredResponseReader;
  readonly connection: ChatConnection;
  readonly body: ResponsesBody;
  /** `compaction` returns the compacted conversation instead of the response. */
  readonly resultFormat?: 'compaction';
}

/** Creates a response. Returns its JSON; with an output the response is streamed to it and the result is undefined. */
export class CreateResponse extends Command<string | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: CreateResponseParams,
    readonly output?: ResponseEventOutput,
  ) {
    super();
  }
}

/** A generated response and its provider. */
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
    private readonly clock: Clock,
  ) {}

  async execute({ payer, request, output }: CreateResponse): Promise<string | undefined> {
    const { requestId, source, reader, connection, body, resultFormat } = request;
    const { accountId } = reader;
    const loaded = await this.requestLoader.load(reader, body);
    // Without an explicit `store`, a response that exceeds the quota is served but reports `store: false`.
    if (body.store) await this.conversations.assertWithinQuota(accountId);
    const draft = new ResponseBuilder(requestId, loaded, this.clock);
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

  /** Tries to store a response, which is already charged. Returns it with `store: false` if it was not stored. */
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
