/** A request for a response, understood together with what it continues and the model that it names. */
import { Catalogues } from '../../catalogue-service.ts';
import { modelNamed } from '../../routing/preferences.ts';
import type { ResponsesBody } from './body.ts';
import { Conversations, type Recalled, type StoredReader } from './conversations.ts';
import { type ResponsesRequest, readResponsesRequest } from './request.ts';

/** A request as it was understood, and the stored conversations that it goes on from. */
export interface ReadResponse extends ResponsesRequest {
  readonly recalled: readonly Recalled[];
}

export class ResponseReading {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly conversations: Conversations,
  ) {}

  /**
   * @param reader of the account whose conversations it may continue
   * @throws UnservableRequest for what cannot be served, or continues what is not there
   */
  async understood(reader: StoredReader, body: ResponsesBody): Promise<ReadResponse> {
    const { model } = modelNamed(body.model, this.catalogues.current);
    const earlier = await this.earlier(reader, body);
    const { input } = body;
    const whole = Array.isArray(input)
      ? await this.conversations.resolved(reader, input, earlier)
      : { input, recalled: earlier };
    const asked = whole.input === input ? body : { ...body, input: whole.input };
    const said = earlier.flatMap(({ items }) => items);
    // Who chooses a model that keeps nothing does not expect us to.
    return { ...readResponsesRequest(asked, said, model.privacy !== 'zdr'), recalled: whole.recalled };
  }

  private async earlier(
    reader: StoredReader,
    { previous_response_id: id }: ResponsesBody,
  ): Promise<readonly Recalled[]> {
    if (id === undefined || id === null) return [];
    return [await this.conversations.recall(reader, id, 'previous_response_id')];
  }
}
