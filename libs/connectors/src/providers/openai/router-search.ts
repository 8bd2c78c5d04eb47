/**
 * The web search of a model's own provider, requested through OpenRouter: by its plugin, which always searches, or by
 * its server tool, with which the model decides. The fields are those of `WebSearchPlugin` and `WebSearchConfig` in
 * `@openrouter/sdk`; https://openrouter.ai/docs/guides/features/server-tools/web-search.
 */
import { type NativeSearch, UpstreamError } from '#application';
import type { JsonObject } from '#kernel';
import type { FieldFilter } from '../../http/field-filter.ts';
import { parseSearchCount } from '../../http/parse-reported.ts';

/**
 * Maximum number of domains that xAI accepts:
 * https://openrouter.ai/docs/guides/features/plugins/web-search#native-provider-behavior
 */
const MAX_DOMAINS = 5;

/** A chat request to which a search is added after its fields were filtered. No caller of the gateway can send one. */
export class ChatRequestWithSearch {
  constructor(
    readonly body: JsonObject,
    readonly search: NativeSearch,
  ) {}
}

/**
 * Adds the search of a `ChatRequestWithSearch` to what a filter sends of its body. The filter knows neither plugins nor
 * server tools, so a request has only those of this module.
 */
export const withRouterSearch =
  (filter: FieldFilter): FieldFilter =>
  (value, at) =>
    value instanceof ChatRequestWithSearch
      ? addSearch(filter(value.body, at) as JsonObject, value.search)
      : filter(value, at);

/**
 * Providers without a limit of searches ignore `max_uses`; xAI is one of them. `x_search` is never sent, because xAI
 * would also search X and bill each post.
 * @throws UpstreamError with `invalid_request` for more domains than the provider accepts, which must not be ignored
 */
function addSearch(request: JsonObject, search: NativeSearch): JsonObject {
  const { maxUses, isRequired, includeDomains, excludeDomains, location } = search;
  if (Math.max(includeDomains.length, excludeDomains.length) > MAX_DOMAINS)
    throw new UpstreamError('invalid_request', `The web search of this model accepts at most ${MAX_DOMAINS} domains`);
  const settings = {
    engine: 'native',
    max_uses: maxUses,
    ...(location === undefined ? {} : { user_location: { type: 'approximate', ...location } }),
  };
  if (isRequired) {
    const domains = omitEmpty({ include_domains: includeDomains, exclude_domains: excludeDomains });
    return { ...request, plugins: [{ id: 'web', ...settings, ...domains }] };
  }
  const domains = omitEmpty({ allowed_domains: includeDomains, excluded_domains: excludeDomains });
  const tool = { type: 'openrouter:web_search', parameters: { ...settings, ...domains } };
  return { ...request, tools: [...((request.tools ?? []) as readonly JsonObject[]), tool] };
}

function omitEmpty(lists: Readonly<Record<string, readonly string[]>>): JsonObject {
  return Object.fromEntries(Object.entries(lists).filter(([, { length }]) => length > 0));
}

/**
 * Returns the number of invoiced searches in the usage of a chat. The API and the SDK (`ChatUsage`) name the field
 * `server_tool_use_details`, and the documentation names it `server_tool_use`.
 * @returns undefined if no plausible number is reported
 */
export function parseInvoicedSearches(usage: unknown): number | undefined {
  const { server_tool_use_details: details, server_tool_use: documented } = (usage ?? {}) as JsonObject;
  const { web_search_requests } = (details ?? documented ?? {}) as JsonObject;
  return parseSearchCount(web_search_requests);
}
