/** Estimates the input tokens of a response, since every provider counts differently. This operation is free. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { ACCOUNT } from '#domain';
import { toStreamName } from '#kernel';
import { TokenCounter } from '../../tokens/token-counter.ts';
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
  constructor(
    private readonly requestLoader: ResponseRequestLoader,
    private readonly tokenCounter: TokenCounter,
  ) {}

  /** @throws InvalidRequestError if the model or a stored response does not exist, or the request is invalid */
  async execute({ reader, body }: CountResponseTokens): Promise<number> {
    const { chat } = await this.requestLoader.load(reader, body);
    const owner = toStreamName(ACCOUNT, reader.accountId);
    return estimateInputTokens(chat, (text) => this.tokenCounter.count(owner, text));
  }
}
