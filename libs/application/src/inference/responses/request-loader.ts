/** Parses a request together with the stored conversations that it continues or references. */
import { CatalogueService } from '../../catalogue-service.ts';
import { selectModels } from '../../routing/model-list.ts';
import { resolveModel } from '../../routing/preferences.ts';
import type { ResponsesBody } from './body.ts';
import { ConversationService, type StoredResponseReader } from './conversations.ts';
import { type ParsedResponsesRequest, parseResponsesRequest } from './request.ts';
import type { LoadedConversation } from './stored-parts.ts';

export interface LoadedResponseRequest extends ParsedResponsesRequest {
  readonly loadedConversations: readonly LoadedConversation[];
}

export class ResponseRequestLoader {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly conversations: ConversationService,
  ) {}

  /**
   * @param reader the account whose stored conversations the request may continue
   * @throws InvalidRequestError if the request is invalid, or the model, a conversation or an item does not exist
   */
  async load(reader: StoredResponseReader, body: ResponsesBody): Promise<LoadedResponseRequest> {
    const models = selectModels(body, (name) => resolveModel(name, this.catalogues.current).model);
    const earlier = await this.loadPrevious(reader, body);
    const { input } = body;
    const resolved = Array.isArray(input)
      ? await this.conversations.resolveReferences(reader, input, earlier)
      : { input, loadedConversations: earlier };
    const resolvedBody = resolved.input === input ? body : { ...body, input: resolved.input };
    const earlierItems = earlier.flatMap(({ items }) => items);
    // A caller that selects a model with zero data retention does not expect the gateway to store its responses.
    return {
      ...parseResponsesRequest(
        resolvedBody,
        earlierItems,
        models.every(({ privacy }) => privacy !== 'zdr'),
      ),
      loadedConversations: resolved.loadedConversations,
    };
  }

  private async loadPrevious(
    reader: StoredResponseReader,
    { previous_response_id: id }: ResponsesBody,
  ): Promise<readonly LoadedConversation[]> {
    if (id === undefined || id === null) return [];
    return [await this.conversations.load(reader, id, 'previous_response_id')];
  }
}
