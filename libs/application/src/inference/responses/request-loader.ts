/** A request for a response, understood together with what it continues and the model that it names. */
import { CatalogueService } from '../../catalogue-service.ts';
import { resolveModel } from '../../routing/preferences.ts';
import type { ResponsesBody } from './body.ts';
import { ConversationService, type LoadedConversation, type StoredResponseReader } from './conversations.ts';
import { type ParsedResponsesRequest, parseResponsesRequest } from './request.ts';

/** A request as it was understood, and the stored conversations that it goes on from. */
export interface LoadedResponseRequest extends ParsedResponsesRequest {
  readonly recalled: readonly LoadedConversation[];
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
  async understood(reader: StoredResponseReader, body: ResponsesBody): Promise<LoadedResponseRequest> {
    const { model } = resolveModel(body.model, this.catalogues.current);
    const earlier = await this.earlier(reader, body);
    const { input } = body;
    const whole = Array.isArray(input)
      ? await this.conversations.resolved(reader, input, earlier)
      : { input, recalled: earlier };
    const asked = whole.input === input ? body : { ...body, input: whole.input };
    const said = earlier.flatMap(({ items }) => items);
    // Who chooses a model that keeps nothing does not expect us to.
    return { ...parseResponsesRequest(asked, said, model.privacy !== 'zdr'), recalled: whole.recalled };
  }

  private async earlier(
    reader: StoredResponseReader,
    { previous_response_id: id }: ResponsesBody,
  ): Promise<readonly LoadedConversation[]> {
    if (id === undefined || id === null) return [];
    return [await this.conversations.recall(reader, id, 'previous_response_id')];
  }
}
