/** How many tokens a message would have as its input: an estimate, since each vendor counts in its own way. It costs nothing. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { CatalogueService } from '../../catalogue-service.ts';
import { estimateInputTokens } from '../chat/count-tokens.ts';
import { resolveChatModel } from '../chat-execution/quote-chat.ts';
import type { MessagesBody } from './body.ts';
import { parseMessagesRequest } from './request.ts';

export class CountMessageTokens extends Command<number> {
  constructor(readonly body: MessagesBody) {
    super();
  }
}

@CommandHandler(CountMessageTokens)
export class CountMessageTokensHandler implements ICommandHandler<CountMessageTokens> {
  constructor(private readonly catalogues: CatalogueService) {}

  /** @throws InvalidRequestError for a model that is not there, and for what could not be served */
  async execute({ body }: CountMessageTokens): Promise<number> {
    resolveChatModel(body.model, this.catalogues.current);
    return estimateInputTokens(parseMessagesRequest(body).chat);
  }
}
