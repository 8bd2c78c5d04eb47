/** How many tokens a message would have as its input: an estimate, since each vendor counts in its own way. It costs nothing. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Catalogues } from '../../catalogue-service.ts';
import { estimatedInputTokens } from '../chat/count-tokens.ts';
import { chatModel } from '../chat-execution/quote-chat.ts';
import type { MessagesBody } from './body.ts';
import { readMessagesRequest } from './request.ts';

export class CountMessageTokens extends Command<number> {
  constructor(readonly body: MessagesBody) {
    super();
  }
}

@CommandHandler(CountMessageTokens)
export class CountMessageTokensHandler implements ICommandHandler<CountMessageTokens> {
  constructor(private readonly catalogues: Catalogues) {}

  /** @throws UnservableRequest for a model that is not there, and for what could not be served */
  async execute({ body }: CountMessageTokens): Promise<number> {
    chatModel(body.model, this.catalogues.current);
    return estimatedInputTokens(readMessagesRequest(body).chat);
  }
}
