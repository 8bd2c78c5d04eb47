/**
 * What goes to vendors that speak Anthropic's Messages. Not listed, since it would change what is billed: `service_tier`,
 * `inference_geo`, `speed`, `container`, `mcp_servers`, and the life of a mark for the cache.
 * https://docs.claude.com/en/api/messages
 */
import { anything, byType, fields, list } from '../../http/field-filter.ts';
import { SEARCH_TOOL } from './searches.ts';

const mark = fields({ type: anything });
const source = fields({ type: anything, media_type: anything, data: anything, url: anything });

const block = byType('Content parts', {
  text: fields({ type: anything, text: anything, cache_control: mark }),
  image: fields({ type: anything, source, cache_control: mark }),
  document: fields({ type: anything, source, title: anything, cache_control: mark }),
  thinking: fields({ type: anything, thinking: anything, signature: anything }),
  redacted_thinking: fields({ type: anything, data: anything }),
  tool_use: fields({ type: anything, id: anything, name: anything, input: anything }),
  tool_result: (value, at) => result(value, at),
});

const result = fields({
  type: anything,
  tool_use_id: anything,
  content: list(block),
  is_error: anything,
  cache_control: mark,
});

/** Tools of the caller's have no type; of Anthropic's own there is the search that we have a price for. */
const tool = byType(
  'Tools',
  {
    custom: fields({
      name: anything,
      description: anything,
      input_schema: anything,
      strict: anything,
      cache_control: mark,
    }),
    [SEARCH_TOOL]: fields({
      type: anything,
      name: anything,
      max_uses: anything,
      allowed_domains: anything,
      blocked_domains: anything,
      user_location: anything,
    }),
  },
  () => 'custom',
);

export const allowedMessages = fields({
  model: anything,
  max_tokens: anything,
  messages: list(fields({ role: anything, content: list(block) })),
  system: list(block),
  tools: list(tool),
  tool_choice: fields({ type: anything, name: anything, disable_parallel_tool_use: anything }),
  thinking: fields({ type: anything, budget_tokens: anything, display: anything }),
  output_config: fields({ format: anything, effort: anything }),
  temperature: anything,
  top_p: anything,
  top_k: anything,
  stop_sequences: anything,
  metadata: fields({ user_id: anything }),
  stream: anything,
});
