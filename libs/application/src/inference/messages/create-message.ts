/** Creates a message of Anthropic's API: converts the request to a chat, and its completion to a message. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Payer } from '../../billing/payer.ts';
import { TokenCounter } from '../../tokens/token-counter.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { estimateInputTokens } from '../chat/count-tokens.ts';
import { type ChatConnection, ChatService } from '../responses/chat-service.ts';
import type { StoredResponseReader } from '../responses/conversations.ts';
import type { MessagesBody } from './body.ts';
import { MessageBuilder } from './message-builder.ts';
import { type MessageEventOutput, MessageWriter } from './message-writer.ts';
import { parseMessagesRequest } from './request.ts';
import { ThreadLoader } from './threads.ts';
import { toMessageUsage } from './usage.ts';

export interface CreateMessageParams {
  readonly requestId: string;
  /** The origin of the request, as displayed in the query history. */
  readonly source: string;
  /** The account whose threads the request may continue. */
  readonly reader: StoredResponseReader;
  readonly connection: ChatConnection;
  readonly body: MessagesBody;
}

/** Creates a message and returns its JSON. With an output, streams the message instead and returns undefined. */
export class CreateMessage extends Command<string | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: CreateMessageParams,
    readonly output?: MessageEventOutput,
  ) {
    super();
  }
}

@CommandHandler(CreateMessage)
export class CreateMessageHandler implements ICommandHandler<CreateMessage> {
  constructor(
    private readonly chats: ChatService,
    private readonly tokenCounter: TokenCounter,
    private readonly threads: ThreadLoader,
  ) {}

  async execute({ payer, request, output }: CreateMessage): Promise<string | undefined> {
    const { requestId, source, connection, reader } = request;
    const thread = await this.threads.load(reader, request.body);
    const body = thread?.body ?? request.body;
    const { chat, thinkingVisibility } = await parseMessagesRequest(body);
    const retainsTexts = thread !== undefined || output === undefined;
    const draft = new MessageBuilder(requestId, body.model, { thinkingVisibility, retainsTexts });
    const chatParams = { requestId, source, connection, body: chat, type: 'message', isLimitRequired: true } as const;
    const writer = output && new MessageWriter(output, draft, { inputTokens: this.estimateInput(payer, chat), thread });
    const completion = await this.chats.complete(payer, chatParams, writer);
    if (!completion) return undefined;
    draft.setSource(completion);
    draft.acceptComplete(completion.body, completion.searches);
    const message = draft.build(toMessageUsage(completion.receipt));
    await thread?.store(draft.messageId, draft.content);
    return JSON.stringify(message);
  }

  /** Estimates the input tokens while the provider is called. @returns 0 if too much waits to be counted */
  private estimateInput({ id }: Payer, chat: ChatBody): Promise<number> {
    return estimateInputTokens(chat, (text) => this.tokenCounter.count(id, text)).catch(() => 0); // only an estimate
  }
}
