/** A request for a response, understood together with what it continues and the model that it names. */
import { Catalogues } from '../../catalogues.ts';
import { modelNamed } from '../../routing/preferences.ts';
import type { Thing } from '../vocabulary/things.ts';
import type { ResponsesBody } from './body.ts';
import { Conversations } from './conversations.ts';
import { type ResponsesRequest, readResponsesRequest } from './request.ts';

export class ResponseReading {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly conversations: Conversations,
  ) {}

  /**
   * @param accountId the account whose conversations it may continue
   * @throws UnservableRequest for what cannot be served, or continues what is not there
   */
  async understood(accountId: string, body: ResponsesBody): Promise<ResponsesRequest> {
    const { model } = modelNamed(body.model, this.catalogues.current);
    const earlier = await this.earlier(accountId, body);
    const { input } = body;
    const whole = Array.isArray(input) ? await this.conversations.resolved(accountId, input) : input;
    const asked = whole === input ? body : { ...body, input: whole };
    // Who chooses a model that keeps nothing does not expect us to.
    return readResponsesRequest(asked, earlier, model.privacy !== 'zdr');
  }

  private async earlier(accountId: string, { previous_response_id: id }: ResponsesBody): Promise<readonly Thing[]> {
    if (id === undefined || id === null) return [];
    return (await this.conversations.recall(accountId, id, 'previous_response_id')).items;
  }
}
