/** How many tokens a response would have as its input: an estimate, since each vendor counts in its own way. It costs nothing. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { estimatedInputTokens } from '../chat/count-tokens.ts';
import type { ResponsesBody } from './body.ts';
import type { StoredReader } from './conversations.ts';
import { ResponseReading } from './request-loader.ts';

export class CountResponseTokens extends Command<number> {
  constructor(
    readonly reader: StoredReader,
    readonly body: ResponsesBody,
  ) {
    super();
  }
}

@CommandHandler(CountResponseTokens)
export class CountResponseTokensHandler implements ICommandHandler<CountResponseTokens> {
  constructor(private readonly reading: ResponseReading) {}

  /** @throws UnservableRequest for a model that is not there, and for what could not be served */
  async execute({ reader, body }: CountResponseTokens): Promise<number> {
    return estimatedInputTokens((await this.reading.understood(reader, body)).chat);
  }
}
