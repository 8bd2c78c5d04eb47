/** Sells one chat completion: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Endpoint } from '#catalogue';
import { BillingEngine } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { SearchQuery, SearchResult } from '../../providers/web-search.ts';
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
import type { PreSearchPlan, SearchPlan, ToolSearchPlan } from '../search/search-plan.ts';
import { ChatQuoter } from './chat-quoter.ts';
import { FilesByUrl, MAX_FILE_BYTES } from './files-by-url.ts';
import { combineOrders, findHighest, serveWithFallbacks } from './model-orders.ts';
import { NativeSearchChat } from './native-search-chat.ts';
import { type ChatOrder, limitSearchesToHold } from './quote-chat.ts';
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
    const untruncated = this.quoter.createOrders(payer, request, client !== undefined);
    const files = new FilesByUrl(untruncated[0]);
    if (!files.isEmpty) await request.connection.reserveMemory(MAX_FILE_BYTES);
    try {
      const orders = await this.quoter.truncate(payer, untruncated);
      const order = combineOrders(orders);
      const serve = <T>(purchase: Purchase, use: (executor: ChatExecutor) => Promise<T>): Promise<T> => {
        const preSearch = new SharedPreSearch(purchase, this.services);
        return serveWithFallbacks(orders, purchase, {
          serve: async (one) => {
            request.connection.reportIgnoredSearch(one.ignoresSearch);
            const inlined = await files.inline(one, this.services.downloads, purchase.signal);
            return use(await createChatExecutor(inlined, purchase, { services: this.services, preSearch }));
          },
          canServe: ({ plan }) => preSearch.isUsableFor(plan),
        });
      };
      if (client) {
        const stream = (purchase: Purchase) => serve(purchase, (executor) => executor.stream(client));
        await this.billing.sellStream(
          payer,
          order,
          (purchase) => this.runWithFirstComment(client, stream(purchase)),
          client,
        );
        return undefined;
      }
      const complete = (purchase: Purchase) => serve(purchase, (executor) => executor.complete());
      const sold = await this.billing.sell(payer, order, complete, request.connection);
      return { ...sold.result, receipt: sold.receipt };
    } catch (error) {
      throw explainInsufficientBalance(error, findHighest(untruncated).quote);
    }
  }

  /**
   * Calls `startHeartbeat` if the result takes longer than `firstCommentMs`, because proxies close idle connections.
   * The call has no effect once the stream has started.
   */
  private async runWithFirstComment<A>(client: CompletionWriter, result: Promise<A>): Promise<A> {
    const { runtime } = this.billing;
    const stopTimer = runtime.startTimer(this.settings.firstCommentMs, () => client.startHeartbeat?.());
    return result.finally(stopTimer);
  }
}

/**
 * Creates the executor for the search plan of an order.
 * @throws UpstreamError if a search before the call of the model fails
 */
function createChatExecutor(
  order: ChatOrder,
  purchase: Purchase,
  { services, preSearch }: { readonly services: InferenceServices; readonly preSearch: SharedPreSearch },
): ChatExecutor | Promise<ChatExecutor> {
  const { plan } = order;
  switch (plan?.kind) {
    case 'pre_search':
      return preSearch.createChat(plan, order);
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

/**
 * Searches the web before a model is called. All models of the request use the results of the one search. A failed
 * search is not billed and fails the request.
 */
class SharedPreSearch {
  private completed: { readonly plan: PreSearchPlan; readonly results: readonly SearchResult[] } | undefined;

  constructor(
    private readonly purchase: Purchase,
    private readonly services: InferenceServices,
  ) {}

  async createChat(plan: PreSearchPlan, order: ChatOrder): Promise<ChatExecutor> {
    this.completed ??= await this.search(plan);
    const { results } = this.completed;
    const searches = [{ at: 0, query: plan.query, state: 'completed', results }] as const;
    const day = this.services.clock.now().slice(0, 'YYYY-MM-DD'.length);
    const body = withResults(order.body, plan, { results, day });
    return new SingleCallChat({ ...order, body, searchResults: results, searches }, this.purchase, this.services);
  }

  /** Whether a model with this plan can use the results, if the search has been made. */
  isUsableFor(plan: SearchPlan | undefined): boolean {
    return this.completed === undefined || this.completed.plan === plan;
  }

  private async search(plan: PreSearchPlan) {
    const { hold, signal } = this.purchase;
    const search = this.services.providers.get(hold, plan.fee.provider, 'search');
    const response = await search({ ...plan, signal });
    this.purchase.billSearches(plan.fee, 1, response);
    return { plan, results: response.results };
  }
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
