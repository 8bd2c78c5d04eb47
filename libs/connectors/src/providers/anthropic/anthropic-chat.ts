import { type AppliedSampling, type ChatCall, type Completion, type CompletionStream } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';
import type { JsonHttpClient } from '../../http/json-http-client.ts';
import type { BillFormat } from '../../http/reported-bill.ts';
import { withReasoningLimit } from '../chat/reasoning-limit.ts';

import { listToolBetas } from './client-tools.ts';
import { AnthropicEventTranslator } from './message-events.ts';
import { getPausedContent } from './paused-response.ts';
import { toMessagesRequest } from './request.ts';
import { parseAnthropicCompletion } from './response.ts';
import { AnthropicSearchTranslator } from './search-events.ts';
import { BLOCK_BINDING_BETA, getThinkingLimit } from './thinking.ts';

/** The latest version of the API that accepts `temperature`, `top_p` and `top_k`, which callers may set. */
export const ANTHROPIC_HEADERS = { 'anthropic-version': '2023-06-01' };
/** Anthropic requires an output limit. This default is the lowest maximum output of its models in the catalogue. */
const DEFAULT_MAX_TOKENS = 64_000;

/** Chat completions through Anthropic's Messages API. */
export class AnthropicChat {
  /** By their betas, of which there are few combinations, and the lifetimes of caches. */
  private readonly endpoints = new Map<string, JsonHttpClient>();

  /**
   * @param createEndpoint creates the client of requests that use these betas and may cache content for an hour
   * @param defaultMaxTokens output limit of a request that specifies none
   */
  constructor(
    private readonly createEndpoint: (betas: readonly string[], cachesForHour: boolean) => JsonHttpClient,
    private readonly billFormat: BillFormat = {},
    private readonly defaultMaxTokens = DEFAULT_MAX_TOKENS,
  ) {}

  async complete(call: ChatCall): Promise<Completion | CompletionStream> {
    const { body, search, modelRules = {}, pausedResponse } = call;
    const request = await toMessagesRequest(body, {
      defaultMaxTokens: this.defaultMaxTokens,
      search,
      modelRules,
      paused: getPausedContent(pausedResponse),
    });
    const sampling = findChangedSampling(body, request);
    const sent = this.send(call, { ...request, stream: call.stream });
    const response = await withReasoningLimit(call, sent, getThinkingLimit(request, modelRules));
    return { ...response, ...(sampling ? { sampling } : {}) };
  }

  /** The beta of thinking applies to models whose thinking is bound to its conversation. */
  private getEndpoint({ modelRules, cachesForHour = false }: ChatCall, { tools }: JsonObject): JsonHttpClient {
    const betas = [...(modelRules?.preservedThinking ? [BLOCK_BINDING_BETA] : []), ...listToolBetas(tools).toSorted()];
    const key = [...betas, cachesForHour].join(',');
    const endpoint = this.endpoints.get(key) ?? this.createEndpoint(betas, cachesForHour);
    this.endpoints.set(key, endpoint);
    return endpoint;
  }

  private async send(call: ChatCall, request: JsonObject): Promise<Completion | CompletionStream> {
    const { body, stream, withoutReasoning, identity, search, signal } = call;
    const { billFormat } = this;
    const endpoint = this.getEndpoint(call, request);
    const expectsJson = isJsonObject(body.response_format) && body.response_format.type === 'json_object';
    const readers = { classifyError: endpoint.classifyError, billFormat, expectsJson };
    const paused = getPausedContent(call.pausedResponse);
    const options = { withoutReasoning, hasSearched: search !== undefined, billFormat, expectsJson };
    if (!stream)
      return parseAnthropicCompletion(await endpoint.post(request, signal), identity, { ...options, paused });
    const parseCompletion = (text: string) => parseAnthropicCompletion(text, identity, options);
    if (search === undefined) {
      const translator = new AnthropicEventTranslator(identity, withoutReasoning, readers);
      return endpoint.stream(request, signal, { translator, parseCompletion });
    }
    const translator = new AnthropicSearchTranslator(identity, withoutReasoning, readers, paused);
    const response = await endpoint.stream(request, signal, { translator, parseCompletion });
    return {
      countInvoicedSearches: () => translator.invoiced,
      getPausedResponse: () => translator.pausedResponse,
      ...response,
    };
  }
}

/**
 * Returns those of `temperature` and `top_p` that the caller has set and that are sent with another value, or not sent
 * (null). Returns undefined if there are none.
 */
function findChangedSampling(body: JsonObject, request: JsonObject): AppliedSampling | undefined {
  const fields = (['temperature', 'top_p'] as const).filter(
    (field) => (body[field] ?? null) !== null && body[field] !== request[field],
  );
  if (fields.length === 0) return undefined;
  return Object.fromEntries(fields.map((field) => [field, (request[field] as number | undefined) ?? null]));
}
