/** One response: the conversation it continues → the chat that it means → the response that is kept. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Payer } from '../../paying/payer.ts';
import type { Thing } from '../vocabulary/things.ts';
import type { ResponsesBody } from './body.ts';
import { Chats } from './chats.ts';
import { Conversations } from './conversations.ts';
import { type ResponsesRequest, readResponsesRequest } from './request.ts';
import { type EventOutlet, ResponseClient } from './response-client.ts';
import { ResponseDraft, type ResponseWire } from './response-draft.ts';

export interface ResponseRequest {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  /** The account whose conversations it may continue. */
  readonly accountId: string;
  readonly body: ResponsesBody;
}

/** Makes a response. Returns its JSON, or sends its events as they come and returns nothing. */
export class CreateResponse extends Command<string | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: ResponseRequest,
    readonly outlet?: EventOutlet,
  ) {
    super();
  }
}

/** A response that has been made, and the provider that made it. */
interface Made {
  readonly draft: ResponseDraft;
  readonly response: ResponseWire;
  readonly provider: string;
}

@CommandHandler(CreateResponse)
export class CreateResponseHandler implements ICommandHandler<CreateResponse> {
  constructor(
    private readonly chats: Chats,
    private readonly conversations: Conversations,
  ) {}

  async execute({ payer, request, outlet }: CreateResponse): Promise<string | undefined> {
    const { requestId, source, accountId, body } = request;
    const understood = await this.understood(accountId, body);
    const draft = new ResponseDraft(requestId, understood);
    const kept = (response: ResponseWire, provider: string) =>
      this.kept(accountId, understood, { draft, response, provider });
    const { chat, native } = understood;
    const whole = await this.chats.complete(
      payer,
      { requestId, source, body: chat, type: 'response', responses: native },
      outlet && new ResponseClient(outlet, draft, kept),
    );
    if (!whole) return undefined;
    draft.answeredBy(whole);
    for (const search of whole.searches) draft.search(search);
    draft.accept(whole.body);
    draft.end();
    return JSON.stringify(await kept(draft.finished(whole.receipt), whole.provider));
  }

  /** @throws UnservableRequest for what cannot be served, or continues what is not there */
  private async understood(accountId: string, body: ResponsesBody): Promise<ResponsesRequest> {
    const earlier = await this.earlier(accountId, body);
    const { input } = body;
    const whole = Array.isArray(input) ? await this.conversations.resolved(accountId, input) : input;
    return readResponsesRequest(whole === input ? body : { ...body, input: whole }, earlier);
  }

  private async earlier(accountId: string, { previous_response_id: id }: ResponsesBody): Promise<readonly Thing[]> {
    if (id === undefined || id === null) return [];
    return (await this.conversations.recall(accountId, id, 'previous_response_id')).items;
  }

  /** The response as it is answered, after the attempt to store it. It is charged by then in any case. */
  private async kept(accountId: string, request: ResponsesRequest, made: Made): Promise<ResponseWire> {
    const { draft, response, provider } = made;
    if (!request.store) return response;
    const answered = draft.kept(provider);
    const said = { items: [...request.said, ...answered], response: JSON.stringify(response) };
    const kept = await this.conversations.keep(accountId, draft.id, said, answered);
    return kept ? response : { ...response, store: false };
  }
}
