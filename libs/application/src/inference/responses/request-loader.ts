/** A request for a response, understood together with what it continues and the model that it names. */
import { CatalogueService } from '../../catalogue-service.ts';
import { resolveModel } from '../../routing/preferences.ts';
import type { ResponsesBody } from './body.ts';
import { ConversationService, type LoadedConversation, type StoredResponseReader } from './conversations.ts';
import { type ParsedResponsesRequest, parseResponsesRequest } from './request.ts';

/** A request as it was understood, and the stored conversations that it goes on from. */
export interface LoadedResponseRequest extends ParsedResponsesRequest {
  readonly loadedConversations: readonly LoadedConversation[];
}

export class ResponseRequestLoader {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly conversations: ConversationService,
  ) {}

  /**
   * @param reader of the account whose conversations it may continue
   * @throws InvalidRequestError for what cannot be served, or continues what is not there
   */
  async load(reader: StoredResponseReader, body: ResponsesBody): Promise<LoadedResponseRequest> {
    const { model } = resolveModel(body.model, this.catalogues.current);
    const earlier = await this.loadPrevious(reader, body);
    const { input } = body;
    const resolved = Array.isArray(input)
      ? await this.conversations.resolveReferences(reader, input, earlier)
      : { input, loadedConversations: earlier };
    const resolvedBody = resolved.input === input ? body : { ...body, input: resolved.input };
    const earlierItems = earlier.flatMap(({ items }) => items);
    // Who chooses a model that keeps nothing does not expect us to.
    return {
      ...parseResponsesRequest(resolvedBody, earlierItems, model.privacy !== 'zdr'),
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
