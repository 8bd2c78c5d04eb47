/** One message of Anthropic's: the chat that it means → the message that is answered. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Audience } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import { Chats } from '../responses/chat-service.ts';
import type { MessagesBody } from './body.ts';
import { MessageDraft } from './message-builder.ts';
import { MessageClient, type MessageOutlet } from './message-writer.ts';
import { readMessagesRequest } from './request.ts';
import { usageWire } from './usage.ts';

export interface MessageRequest {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly audience: Audience;
  readonly body: MessagesBody;
}

/** Makes a message. Returns its JSON, or sends its events as they come and returns nothing. */
export class CreateMessage extends Command<string | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: MessageRequest,
    readonly outlet?: MessageOutlet,
  ) {
    super();
  }
}

@CommandHandler(CreateMessage)
export class CreateMessageHandler implements ICommandHandler<CreateMessage> {
  constructor(private readonly chats: Chats) {}

  async execute({ payer, request, outlet }: CreateMessage): Promise<string | undefined> {
    const { requestId, source, audience, body } = request;
    const { chat, thoughts } = readMessagesRequest(body);
    const draft = new MessageDraft(requestId, body.model, thoughts);
    const asked = { requestId, source, audience, body: chat, type: 'message', limitDemanded: true } as const;
    const whole = await this.chats.complete(payer, asked, outlet && new MessageClient(outlet, draft));
    if (!whole) return undefined;
    draft.answeredBy(whole);
    for (const search of whole.searches) draft.search(search);
    draft.accept(whole.body);
    return JSON.stringify(draft.finished(usageWire(whole.receipt)));
  }
}
