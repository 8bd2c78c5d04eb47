/** Estimates the input tokens of a message, since every provider counts differently. This operation is free. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { ACCOUNT } from '#domain';
import { toStreamName } from '#kernel';
import { CatalogueService } from '../../catalogue-service.ts';
import { TokenCounter } from '../../tokens/token-counter.ts';
import { estimateInputTokens } from '../chat/count-tokens.ts';
import { resolveChatModel } from '../chat-execution/quote-chat.ts';
import type { MessagesBody } from './body.ts';
import { parseMessagesRequest } from './request.ts';

export class CountMessageTokens extends Command<number> {
  constructor(
    readonly accountId: string,
    readonly body: MessagesBody,
  ) {
    super();
  }
}

@CommandHandler(CountMessageTokens)
export class CountMessageTokensHandler implements ICommandHandler<CountMessageTokens> {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly tokenCounter: TokenCounter,
  ) {}

  /** @throws InvalidRequestError if there is no such chat model, or the request is invalid or not supported */
  async execute({ accountId, body }: CountMessageTokens): Promise<number> {
    resolveChatModel(body.model, this.catalogues.current);
    const owner = toStreamName(ACCOUNT, accountId);
    const { chat } = await parseMessagesRequest(body);
    return estimateInputTokens(chat, (text) => this.tokenCounter.count(owner, text));
  }
}
