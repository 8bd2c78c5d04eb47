/** How many tokens a response would have as its input: an estimate, since each vendor counts in its own way. It costs nothing. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { estimateInputTokens } from '../chat/count-tokens.ts';
import type { ResponsesBody } from './body.ts';
import type { StoredResponseReader } from './conversations.ts';
import { ResponseRequestLoader } from './request-loader.ts';

export class CountResponseTokens extends Command<number> {
  constructor(
    readonly reader: StoredResponseReader,
    readonly body: ResponsesBody,
  ) {
    super();
  }
}

@CommandHandler(CountResponseTokens)
export class CountResponseTokensHandler implements ICommandHandler<CountResponseTokens> {
  constructor(private readonly requestLoader: ResponseRequestLoader) {}

  /** @throws InvalidRequestError for a model that is not there, and for what could not be served */
  async execute({ reader, body }: CountResponseTokens): Promise<number> {
    return estimateInputTokens((await this.requestLoader.load(reader, body)).chat);
  }
}
