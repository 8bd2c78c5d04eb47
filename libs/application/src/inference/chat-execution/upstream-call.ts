/** Calls endpoints for a chat, and estimates the usage of the calls. */
import { cachesForHour, type Endpoint } from '#catalogue';
import type { Usage } from '#domain';
import type { Hold } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type {
  ChatCall,
  Completion,
  CompletionIdentity,
  CompletionStream,
  PausedResponse,
  ProviderRegistry,
} from '../../providers/provider.ts';
import type { NativeSearch } from '../../providers/web-search.ts';
import { mapNotFoundError } from '../../routing/preferences.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';
import { type ChatBody, toUpstreamBody } from '../chat/chat-body.ts';
import { countInputTokens } from '../chat/count-tokens.ts';
import { toUpstreamResponsesBody, usesNativeResponses } from '../responses/native-request.ts';
import { type ChatOrder, usesGatewaySearch } from './quote-chat.ts';

/** Calls one endpoint, with a Responses request if the endpoint and the request allow it, else with a chat request. */
export type CallUpstream = (endpoint: Endpoint, params: UpstreamCallParams) => Promise<Completion | CompletionStream>;

export interface UpstreamCallParams {
  readonly body: ChatBody;
  /** Maximum output tokens per choice; undefined for the model's maximum. */
  readonly limit: number | undefined;
  readonly stream: boolean;
  /** The searches that the provider may make itself. */
  readonly search?: NativeSearch | undefined;
  /** The turn that the call continues. */
  readonly pausedResponse?: PausedResponse;
  readonly onSend?: ChatCall['onSend'];
}

export function createUpstreamCall(order: ChatOrder, purchase: Purchase, providers: ProviderRegistry): CallUpstream {
  const { hold, signal } = purchase;
  const { resolved, reasoning, plan, responses } = order;
  const identity = createCompletionIdentity(order, hold);
  return (endpoint, { body, limit, stream, search, pausedResponse, onSend }) => {
    const { upstream, speaks, modelRules } = endpoint;
    const target = { ...endpoint, model: endpoint.model + resolved.forwardedSuffix };
    const isNative =
      responses !== undefined && !usesGatewaySearch(plan) && usesNativeResponses(endpoint, responses, limit);
    const protocol = isNative ? 'responses' : 'chat';
    const callProvider = providers.get(hold, upstream, protocol);
    purchase.markStreaming(stream ? endpoint : undefined);
    const response = callProvider({
      protocol,
      protocols: speaks,
      body: isNative
        ? toUpstreamResponsesBody({ ...responses, body: { ...responses.body, stream } }, target, limit, reasoning)
        : toUpstreamBody({ ...body, stream }, target, limit, reasoning),
      modelRules,
      stream,
      cachesForHour: cachesForHour(endpoint),
      withoutReasoning: reasoning?.exclude === true,
      identity: identity(endpoint),
      search,
      ...(pausedResponse ? { pausedResponse } : {}),
      ...(onSend ? { onSend } : {}),
      signal,
    });
    return mapNotFoundError(resolved, endpoint, response);
  };
}

export function createCompletionIdentity(
  { resolved, created }: ChatOrder,
  { holdId }: Hold,
): (endpoint: Endpoint) => CompletionIdentity {
  return ({ provider }) => ({ id: `gen-${holdId}`, model: resolved.model.id, provider, created });
}

/** Returns a function that estimates usage that no provider reported, from the generated text. */
export function createUsageEstimate({ payerId }: Purchase, tokenCounter: TokenCounter) {
  const countText = tokenCounter.createRequiredCount(payerId);
  return async (body: ChatBody, delivered: string): Promise<Usage> => {
    const [input, output] = await Promise.all([countInputTokens(body, countText), countText(delivered)]);
    return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  };
}
