/** One message of Anthropic's: the chat that it means → the message that is answered. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import { ChatService } from '../responses/chat-service.ts';
import type { MessagesBody } from './body.ts';
import { MessageBuilder } from './message-builder.ts';
import { type MessageEventOutput, MessageWriter } from './message-writer.ts';
import { parseMessagesRequest } from './request.ts';
import { toMessageUsage } from './usage.ts';

export interface CreateMessageParams {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly audience: ClientConnection;
  readonly body: MessagesBody;
}

/** Makes a message. Returns its JSON, or sends its events as they come and returns nothing. */
export class CreateMessage extends Command<string | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: CreateMessageParams,
    readonly outlet?: MessageEventOutput,
  ) {
    super();
  }
}

@CommandHandler(CreateMessage)
export class CreateMessageHandler implements ICommandHandler<CreateMessage> {
  constructor(private readonly chats: ChatService) {}

  async execute({ payer, request, outlet }: CreateMessage): Promise<string | undefined> {
    const { requestId, source, audience, body } = request;
    const { chat, thoughts } = parseMessagesRequest(body);
    const draft = new MessageBuilder(requestId, body.model, thoughts);
    const asked = { requestId, source, audience, body: chat, type: 'message', limitDemanded: true } as const;
    const whole = await this.chats.complete(payer, asked, outlet && new MessageWriter(outlet, draft));
    if (!whole) return undefined;
    draft.answeredBy(whole);
    for (const search of whole.searches) draft.search(search);
    draft.accept(whole.body);
    return JSON.stringify(draft.finished(toMessageUsage(whole.receipt)));
  }
}
