/**
 * The fields that are sent to providers with Anthropic's Messages API (https://docs.claude.com/en/api/messages). Fields
 * that change the price are not listed: `service_tier`, `inference_geo`, `speed`, `container`, `mcp_servers`, and the
 * lifetime of `cache_control` if only the default one has a price.
 */
import { allowAny, allowByType, allowEach, allowFields, type FieldFilter } from '../../http/field-filter.ts';
import { CLIENT_TOOL_TYPES } from './client-tools.ts';
import { SEARCH_TOOL_TYPE } from './searches.ts';

/**
 * Creates the filter for a request.
 * @param cachesForHour whether the lifetime of `cache_control` is sent
 */
export function createMessagesFilter(cachesForHour: boolean): FieldFilter {
  const mark = allowFields({ type: allowAny, ...(cachesForHour ? { ttl: allowAny } : {}) });
  const source = allowFields({ type: allowAny, media_type: allowAny, data: allowAny, url: allowAny });

  const block = allowByType('Content parts', {
    text: allowFields({ type: allowAny, text: allowAny, citations: allowAny, cache_control: mark }),
    image: allowFields({ type: allowAny, source, cache_control: mark }),
    document: allowFields({ type: allowAny, source, title: allowAny, cache_control: mark }),
    thinking: allowFields({ type: allowAny, thinking: allowAny, signature: allowAny }),
    redacted_thinking: allowFields({ type: allowAny, data: allowAny }),
    tool_use: allowFields({ type: allowAny, id: allowAny, name: allowAny, input: allowAny }),
    tool_result: (value, at) => result(value, at),
    // Only a continued turn has these blocks.
    server_tool_use: allowFields({ type: allowAny, id: allowAny, name: allowAny, input: allowAny, caller: allowAny }),
    web_search_tool_result: allowFields({ type: allowAny, tool_use_id: allowAny, content: allowAny, caller: allowAny }),
  });

  const result = allowFields({
    type: allowAny,
    tool_use_id: allowAny,
    content: allowEach(block),
    is_error: allowAny,
    cache_control: mark,
  });

  const clientTool = allowFields({
    type: allowAny,
    name: allowAny,
    max_characters: allowAny,
    display_width_px: allowAny,
    display_height_px: allowAny,
    display_number: allowAny,
    enable_zoom: allowAny,
    input_examples: allowAny,
    strict: allowAny,
    cache_control: mark,
  });

  /** The caller's tools have no type. Of the tools that Anthropic runs only the web search is priced. */
  const tool = allowByType(
    'Tools',
    {
      custom: allowFields({
        name: allowAny,
        description: allowAny,
        input_schema: allowAny,
        strict: allowAny,
        cache_control: mark,
      }),
      [SEARCH_TOOL_TYPE]: allowFields({
        type: allowAny,
        name: allowAny,
        max_uses: allowAny,
        allowed_domains: allowAny,
        blocked_domains: allowAny,
        user_location: allowAny,
      }),
      ...Object.fromEntries(CLIENT_TOOL_TYPES.map((type) => [type, clientTool])),
    },
    () => 'custom',
  );

  return allowFields({
    model: allowAny,
    max_tokens: allowAny,
    messages: allowEach(allowFields({ role: allowAny, content: allowEach(block) })),
    system: allowEach(block),
    tools: allowEach(tool),
    tool_choice: allowFields({ type: allowAny, name: allowAny, disable_parallel_tool_use: allowAny }),
    thinking: allowFields({
      type: allowAny,
      budget_tokens: allowAny,
      display: allowAny,
      block_binding: allowFields({ prefix_mismatch_behavior: allowAny }),
    }),
    output_config: allowFields({ format: allowAny, effort: allowAny }),
    temperature: allowAny,
    top_p: allowAny,
    top_k: allowAny,
    stop_sequences: allowAny,
    metadata: allowFields({ user_id: allowAny }),
    stream: allowAny,
  });
}
