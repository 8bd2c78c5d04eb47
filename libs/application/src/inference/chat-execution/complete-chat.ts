/** One chat completion: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Endpoint } from '#catalogue';
import { Paying } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import { Providers } from '../../providers/provider.ts';
import type { SearchQuery } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { nameWhatIsAfforded } from '../chat/chat-quote.ts';
import { type AnswerClient, type Answering, ClientPatience, type WholeChat } from '../chat/completion-writer.ts';
import { type ChatRequest, Chats } from '../responses/chat-service.ts';
import { withResults } from '../search/results.ts';
import { SearchingChat } from '../search/search-chat.ts';
import type { SearchBefore, SearchByTool } from '../search/search-plan.ts';
import { ChatQuotes } from './chat-quoter.ts';
import { affordedSearches, type ChatOrder, saleOf } from './quote-chat.ts';
import { counted, identityOf, OneCall, upstreamCall } from './single-call-chat.ts';

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
    private readonly quotes: ChatQuotes,
    private readonly paying: Paying,
    private readonly providers: Providers,
    private readonly patience: ClientPatience,
  ) {
    super();
  }

  execute({ payer, request, client }: CompleteChat): Promise<WholeChat | undefined> {
    return this.complete(payer, request, client);
  }

  async complete(payer: Payer, request: ChatRequest, client?: AnswerClient): Promise<WholeChat | undefined> {
    const order = await this.quotes.orderOf(payer, request, client !== undefined);
    const answer = (purchase: Purchase) => answering(order, purchase, this.providers);
    try {
      if (client) {
        const stream = async (purchase: Purchase) => (await answer(purchase)).stream(client);
        await this.paying.stream(payer, saleOf(order), (purchase) => this.awaited(client, stream(purchase)), client);
        return undefined;
      }
      const whole = async (purchase: Purchase) => (await answer(purchase)).whole();
      const sold = await this.paying.whole(payer, saleOf(order), whole, request.audience);
      return { ...sold.answer, receipt: sold.receipt };
    } catch (error) {
      throw nameWhatIsAfforded(error, order.quote);
    }
  }

  /** An answer that the client waits for: no proxy between takes a long silence for a dead connection. */
  private async awaited<A>(client: AnswerClient, answer: Promise<A>): Promise<A> {
    const patience = setTimeout(() => client.stillWaiting?.(), this.patience.firstCommentMs);
    return answer.finally(() => clearTimeout(patience));
  }
}

/**
 * How it is answered: in one way for each in which the web is searched for it, and in one for none.
 * @throws UpstreamFailure when a search that comes before the answer fails
 */
function answering(order: ChatOrder, purchase: Purchase, providers: Providers): Answering | Promise<Answering> {
  const { plan } = order;
  switch (plan?.kind) {
    case 'before':
      return searchedBefore(plan, order, purchase, providers);
    case 'tool':
      return searchedInRounds(plan, order, purchase, providers);
    case 'upstream': {
      const afforded = affordedSearches(order, plan, purchase.hold.amount);
      return new OneCall({ ...order, ...afforded, searchFee: plan.fee }, purchase, providers);
    }
    case 'anyway':
    case undefined:
      return new OneCall(order, purchase, providers);
    default:
      return plan satisfies never;
  }
}

/** The search runs before the model answers. One that fails costs nothing. */
async function searchedBefore(
  plan: SearchBefore,
  order: ChatOrder,
  purchase: Purchase,
  providers: Providers,
): Promise<Answering> {
  const { hold, signal } = purchase;
  const { results: found, vendorId } = await providers.of(hold, plan.fee.provider, 'search')({ ...plan, signal });
  purchase.billSearches(plan.fee, 1, vendorId);
  const searches = [{ at: 0, query: plan.query, state: 'completed', found }] as const;
  const body = withResults(order.body, plan, { results: found, day: new Date().toISOString().slice(0, 10) });
  return new OneCall({ ...order, body, found, searches }, purchase, providers);
}

function searchedInRounds(plan: SearchByTool, order: ChatOrder, purchase: Purchase, providers: Providers): Answering {
  const { body, quote, named } = order;
  const { hold } = purchase;
  const ask = upstreamCall(order, purchase, providers);
  const request = {
    plan,
    body,
    model: named.model,
    wanted: quote.wanted,
    identityOf: identityOf(order, hold),
    ask: (endpoint: Endpoint, asked: ChatBody, limit: number | undefined) =>
      ask(endpoint, { body: asked, limit, stream: order.stream }),
    search: (query: SearchQuery) => providers.of(hold, plan.fee.provider, 'search')(query),
    counted,
  };
  return new SearchingChat(request, purchase);
}
