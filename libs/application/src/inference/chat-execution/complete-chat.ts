/** Sells one chat completion: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Endpoint } from '#catalogue';
import { BillingEngine } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { SearchQuery } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { explainInsufficientBalance } from '../chat/chat-quote.ts';
import {
  type BilledCompletion,
  type ChatExecutor,
  type CompletionWriter,
  KeepAliveSettings,
} from '../chat/completion-writer.ts';
import { InferenceServices } from '../chat/inference-services.ts';
import { type ChatParams, ChatService } from '../responses/chat-service.ts';
import { withResults } from '../search/results.ts';
import { SearchChat } from '../search/search-chat.ts';
import type { PreSearchPlan, ToolSearchPlan } from '../search/search-plan.ts';
import { ChatQuoter } from './chat-quoter.ts';
import { NativeSearchChat } from './native-search-chat.ts';
import { type ChatOrder, limitSearchesToHold, toOrder } from './quote-chat.ts';
import { SingleCallChat } from './single-call-chat.ts';
import { createCompletionIdentity, createUpstreamCall, createUsageEstimate } from './upstream-call.ts';

/** Completes a chat. With a client the completion is streamed to it and the result is undefined. */
export class CompleteChat extends Command<BilledCompletion | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: ChatParams,
    readonly client?: CompletionWriter,
  ) {
    super();
  }
}

@CommandHandler(CompleteChat)
export class CompleteChatHandler extends ChatService implements ICommandHandler<CompleteChat> {
  constructor(
    private readonly quoter: ChatQuoter,
    private readonly billing: BillingEngine,
    private readonly services: InferenceServices,
    private readonly settings: KeepAliveSettings,
  ) {
    super();
  }

  execute({ payer, request, client }: CompleteChat): Promise<BilledCompletion | undefined> {
    return this.complete(payer, request, client);
  }

  async complete(payer: Payer, request: ChatParams, client?: CompletionWriter): Promise<BilledCompletion | undefined> {
    const untruncated = this.quoter.createOrder(payer, request, client !== undefined);
    if (untruncated.ignoresSearch) request.connection.reportIgnoredSearch();
    try {
      const order = await this.quoter.truncate(payer, untruncated);
      const createExecutor = (purchase: Purchase) => createChatExecutor(order, purchase, this.services);
      if (client) {
        const stream = async (purchase: Purchase) => (await createExecutor(purchase)).stream(client);
        await this.billing.sellStream(
          payer,
          toOrder(order),
          (purchase) => this.runWithFirstComment(client, stream(purchase)),
          client,
        );
        return undefined;
      }
      const complete = async (purchase: Purchase) => (await createExecutor(purchase)).complete();
      const sold = await this.billing.sell(payer, toOrder(order), complete, request.connection);
      return { ...sold.result, receipt: sold.receipt };
    } catch (error) {
      throw explainInsufficientBalance(error, untruncated.quote);
    }
  }

  /**
   * Calls `startHeartbeat` if the result takes longer than `firstCommentMs`, because proxies close idle connections.
   * The call has no effect once the stream has started.
   */
  private async runWithFirstComment<A>(client: CompletionWriter, result: Promise<A>): Promise<A> {
    const timer = setTimeout(() => client.startHeartbeat?.(), this.settings.firstCommentMs);
    return result.finally(() => clearTimeout(timer));
  }
}

/**
 * Creates the executor for the search plan of an order.
 * @throws UpstreamError if a search before the call of the model fails
 */
function createChatExecutor(
  order: ChatOrder,
  purchase: Purchase,
  services: InferenceServices,
): ChatExecutor | Promise<ChatExecutor> {
  const { plan } = order;
  switch (plan?.kind) {
    case 'pre_search':
      return createPreSearchedChat(plan, order, purchase, services);
    case 'tool':
      return createSearchChat(plan, order, purchase, services);
    case 'upstream': {
      const limited = limitSearchesToHold(order, plan, purchase.hold.amount);
      return new NativeSearchChat({ ...order, ...limited, searchFee: plan.fee }, purchase, services);
    }
    case 'built_in':
    case undefined:
      return new SingleCallChat(order, purchase, services);
    default:
      return plan satisfies never;
  }
}

/** Searches the web before the model is called. A failed search is not billed and fails the request. */
async function createPreSearchedChat(
  plan: PreSearchPlan,
  order: ChatOrder,
  purchase: Purchase,
  services: InferenceServices,
): Promise<ChatExecutor> {
  const { hold, signal } = purchase;
  const search = services.providers.get(hold, plan.fee.provider, 'search');
  const response = await search({ ...plan, signal });
  purchase.billSearches(plan.fee, 1, response);
  const { results } = response;
  const searches = [{ at: 0, query: plan.query, state: 'completed', results }] as const;
  const body = withResults(order.body, plan, { results, day: new Date().toISOString().slice(0, 10) });
  return new SingleCallChat({ ...order, body, searchResults: results, searches }, purchase, services);
}

function createSearchChat(
  plan: ToolSearchPlan,
  order: ChatOrder,
  purchase: Purchase,
  services: InferenceServices,
): ChatExecutor {
  const { body, quote, resolved } = order;
  const { hold } = purchase;
  const callUpstream = createUpstreamCall(order, purchase, services.providers);
  const request = {
    plan,
    body,
    model: resolved.model,
    requestedMaxTokens: quote.requestedMaxTokens,
    getIdentity: createCompletionIdentity(order, hold),
    callUpstream: (endpoint: Endpoint, roundBody: ChatBody, limit: number | undefined) =>
      callUpstream(endpoint, { body: roundBody, limit, stream: order.stream }),
    search: (query: SearchQuery) => services.providers.get(hold, plan.fee.provider, 'search')(query),
    estimateUsage: createUsageEstimate(purchase, services.tokenCounter),
  };
  return new SearchChat(request, purchase);
}
