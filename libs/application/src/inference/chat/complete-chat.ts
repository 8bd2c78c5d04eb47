/** One chat completion: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Endpoint } from '#catalogue';
import { Catalogues } from '../../catalogues.ts';
import type { Payer } from '../../paying/payer.ts';
import { Paying } from '../../paying/paying.ts';
import type { Purchase } from '../../paying/purchase.ts';
import { EndpointHealth } from '../../routing/endpoint-health.ts';
import { type ChatRequest, Chats } from '../responses/chats.ts';
import { boundCarried, isAskedNatively, type NativeRequest, truncates } from '../responses/native-request.ts';
import { boundTokensBefore } from '../search/results.ts';
import type { AnswerClient, WholeChat } from '../vocabulary/answers.ts';
import { Providers } from '../vocabulary/providers.ts';
import { nameWhatIsAfforded } from '../vocabulary/quote.ts';
import { type ChatOrder, saleOf } from './chat-order.ts';
import { isOurs, quotedChat } from './quoted-chat.ts';
import { answering } from './strategies.ts';
import { fitting } from './truncation.ts';

/** Answers a chat: whole, or as a stream to a client. */
export class CompleteChat extends Command<WholeChat | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: ChatRequest,
    readonly client?: AnswerClient,
  ) {
    super();
  }
}

@CommandHandler(CompleteChat)
export class CompleteChatHandler extends Chats implements ICommandHandler<CompleteChat> {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly health: EndpointHealth,
    private readonly paying: Paying,
    private readonly providers: Providers,
  ) {
    super();
  }

  execute({ payer, request, client }: CompleteChat): Promise<WholeChat | undefined> {
    return this.complete(payer, request, client);
  }

  async complete(payer: Payer, request: ChatRequest, client?: AnswerClient): Promise<WholeChat | undefined> {
    const order = await this.quote(request, client !== undefined);
    const answer = (purchase: Purchase) => answering(order, purchase, this.providers);
    try {
      if (client) {
        const stream = async (purchase: Purchase) => (await answer(purchase)).stream(client);
        await this.paying.stream(payer, saleOf(order), stream, client);
        return undefined;
      }
      const whole = async (purchase: Purchase) => (await answer(purchase)).whole();
      const sold = await this.paying.whole(payer, saleOf(order), whole);
      return { ...sold.answer, receipt: sold.receipt };
    } catch (error) {
      throw nameWhatIsAfforded(error, order.quote);
    }
  }

  private async quote({ body, responses, ...request }: ChatRequest, stream: boolean): Promise<ChatOrder> {
    const quoted = quotedChat(body, this.catalogues.current, this.health, responses && boundCarried(responses));
    const order = { ...quoted, ...request, responses, stream };
    return responses && truncates(responses.body) ? cut(order, responses) : order;
  }
}

/** Truncates a conversation that is too long, for endpoints that do not do so themselves. */
async function cut(order: ChatOrder, responses: NativeRequest): Promise<ChatOrder> {
  const { quote, plan, body, named } = order;
  const isDoneThere = (endpoint: Endpoint) => !isOurs(plan) && isAskedNatively(endpoint, responses, quote.wanted);
  if (quote.endpoints.every(isDoneThere)) return order;
  const more = plan?.kind === 'before' ? boundTokensBefore(plan) : 0;
  return { ...order, body: await fitting(body, named.model, more) };
}
