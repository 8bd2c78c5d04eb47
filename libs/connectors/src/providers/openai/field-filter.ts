/**
 * The fields that are sent to providers with OpenAI's protocol
 * (https://platform.openai.com/docs/api-reference/chat/create, https://openrouter.ai/docs/api-reference/parameters).
 * Fields that change the price are not listed: `service_tier`, `prediction`, `audio` and any modality except text,
 * `web_search_options`, a `store` that is not false, `prompt_cache_retention`, and the `plugins`, `models`, `route`,
 * `transforms` and `preset` of a router. `router-search.ts` adds the plugin of a search that the gateway charges for.
 */

import { isJsonObject } from '#kernel';
import {
  allowAny,
  allowByType,
  allowEach,
  allowFields,
  allowValues,
  type FieldFilter,
  invalidRequest,
  rejectField,
} from '../../http/field-filter.ts';
import { GEMINI_FORMAT } from '../chat/reasoning-format.ts';
import type { Dialect } from './dialect.ts';

type FieldFilters = Readonly<Record<string, FieldFilter>>;

function allowNames(names: readonly string[]): FieldFilters {
  return Object.fromEntries(names.map((name) => [name, allowAny]));
}

/** `cache_control` without its lifetime, because a long one costs more than the gateway charges for a cache write. */
const mark = allowFields({ type: allowAny });

/**
 * A router searches the web, and bills the search, if the model's name has the suffix `:online`. The gateway does not
 * use this suffix.
 */
const model: FieldFilter = (value, at) => {
  if (typeof value !== 'string' || !/:\s*online\s*(:|$)/i.test(value)) return value;
  throw invalidRequest(`The model "${value}" cannot be requested: ":online" is not sent to providers`, at);
};

/** Routing preferences for a router, such as a maximum price (`max_price`). */
const routing = allowFields(
  allowNames([
    'order',
    'only',
    'ignore',
    'allow_fallbacks',
    'require_parameters',
    'data_collection',
    'zdr',
    'quantizations',
    'sort',
    'max_price',
    'preferred_max_latency',
    'preferred_min_throughput',
  ]),
);

const FUNCTION = allowFields({ name: allowAny, description: allowAny, parameters: allowAny, strict: allowAny });
const GRAMMAR = { syntax: allowAny, definition: allowAny };
const CUSTOM = allowFields({
  name: allowAny,
  description: allowAny,
  format: allowFields({ type: allowAny, grammar: allowFields(GRAMMAR) }),
});
const NAMED = allowFields({ name: allowAny });
/** The output schema. Its content is sent unchanged. */
const SCHEMA = { name: allowAny, description: allowAny, schema: allowAny, strict: allowAny };

const ALLOWED = {
  function: allowFields({ type: allowAny, function: NAMED }),
  custom: allowFields({ type: allowAny, custom: NAMED }),
};

/** Strings, and objects that name a tool of the request. */
const chatToolChoice = allowByType('Tool choices', {
  ...ALLOWED,
  allowed_tools: allowFields({
    type: allowAny,
    allowed_tools: allowFields({ mode: allowAny, tools: allowEach(allowByType('Tools', ALLOWED)) }),
  }),
});

/** Only files in the request itself. The size of other files is unknown, and ids refer to the operator's account. */
const FILE_FIELDS = {
  filename: allowAny,
  file_data: allowAny,
  file_id: rejectField('Files by id'),
  file_url: rejectField('Files by URL'),
};
const FILE = allowFields(FILE_FIELDS);

const SAMPLING = {
  temperature: allowAny,
  top_p: allowAny,
  top_logprobs: allowAny,
  parallel_tool_calls: allowAny,
  user: allowAny,
  safety_identifier: allowAny,
  prompt_cache_key: allowAny,
  metadata: allowAny,
  stream: allowAny,
};

/** Additional fields of a message for a provider whose dialect does not list them. */
const DEFAULT_MESSAGE_FIELDS = ['name'];
/** Fields that only messages of the model have. */
const ASSISTANT_FIELDS: ReadonlySet<string> = new Set(['refusal', 'reasoning', 'reasoning_details', 'annotations']);

/** A router would not recognise this format. It gets the reasoning of all others, some of which it also sends. */
const reasoningDetail: FieldFilter = (value) =>
  isJsonObject(value) && value.format === GEMINI_FORMAT ? undefined : value;

/** Filters a chat completion request in the dialect of a provider. */
export function createChatFilter({ messages = DEFAULT_MESSAGE_FIELDS }: Dialect): FieldFilter {
  const marked: FieldFilters = messages.includes('cache_control') ? { cache_control: mark } : {};
  const createPartFilter = (name: string, rule: FieldFilter) =>
    allowFields({ type: allowAny, [name]: rule, ...marked });
  const content = allowEach(
    allowByType('Content parts', {
      text: createPartFilter('text', allowAny),
      refusal: createPartFilter('refusal', allowAny),
      image_url: createPartFilter('image_url', allowFields({ url: allowAny, detail: allowAny })),
      file: createPartFilter('file', FILE),
      input_audio: createPartFilter('input_audio', allowFields({ data: allowAny, format: allowAny })),
      video_url: createPartFilter('video_url', allowFields({ url: allowAny })),
    }),
  );
  const shared = {
    role: allowAny,
    content,
    ...allowNames(messages.filter((name) => !ASSISTANT_FIELDS.has(name))),
    ...marked,
  };
  const toolMessage = allowFields({ ...shared, tool_call_id: allowAny });
  const assistantMessage = allowFields({
    ...shared,
    ...allowNames(messages.filter((name) => ASSISTANT_FIELDS.has(name))),
    ...(messages.includes('reasoning_details') ? { reasoning_details: allowEach(reasoningDetail) } : {}),
    tool_calls: allowEach(
      allowFields({
        id: allowAny,
        index: allowAny,
        type: allowAny,
        function: allowFields({ name: allowAny, arguments: allowAny }),
        custom: allowFields({ name: allowAny, input: allowAny }),
      }),
    ),
  });
  const otherMessage = allowFields(shared);
  const message: FieldFilter = (value, at) => {
    const role = isJsonObject(value) ? value.role : undefined;
    if (role === 'assistant') return assistantMessage(value, at);
    return role === 'tool' ? toolMessage(value, at) : otherMessage(value, at);
  };
  const createToolFilter = (name: string, rule: FieldFilter) =>
    allowFields({ type: allowAny, [name]: rule, ...marked });
  const tools = allowByType(
    'Tools',
    { function: createToolFilter('function', FUNCTION), custom: createToolFilter('custom', CUSTOM) },
    (object) => ('function' in object ? 'function' : undefined),
  );
  return allowFields({
    ...SAMPLING,
    model,
    messages: allowEach(message),
    stream_options: allowFields({ include_usage: allowAny }),
    max_tokens: allowAny,
    max_completion_tokens: allowAny,
    top_k: allowAny,
    min_p: allowAny,
    stop: allowAny,
    n: allowAny,
    seed: allowAny,
    frequency_penalty: allowAny,
    presence_penalty: allowAny,
    repetition_penalty: allowAny,
    logprobs: allowAny,
    logit_bias: allowAny,
    response_format: allowFields({ type: allowAny, json_schema: allowFields(SCHEMA) }),
    tools: allowEach(tools),
    tool_choice: chatToolChoice,
    modalities: allowValues('Outputs', ['text']),
    reasoning: allowFields(allowNames(['effort', 'max_tokens', 'exclude', 'enabled'])),
    reasoning_effort: allowAny,
    verbosity: allowAny,
    provider: routing,
  });
}

/** Sends `store` only if it is false, because the gateway stores responses itself. */
const allowOnlyFalse: FieldFilter = (value) => (value === false ? value : undefined);

const responsePart = allowByType('Content parts', {
  input_text: allowFields({ type: allowAny, text: allowAny }),
  output_text: allowFields({ type: allowAny, text: allowAny }),
  refusal: allowFields({ type: allowAny, refusal: allowAny }),
  input_image: allowFields({ type: allowAny, image_url: allowAny, detail: allowAny }),
  input_file: allowFields({ type: allowAny, ...FILE_FIELDS }),
  input_audio: allowFields({ type: allowAny, input_audio: allowFields({ data: allowAny, format: allowAny }) }),
});

/** The result of a tool call. */
const toolOutput = allowFields({ type: allowAny, call_id: allowAny, output: allowEach(responsePart) });
const FUNCTION_CHOICE = allowFields({ type: allowAny, name: allowAny });
const CALLER_CHOICES = { function: FUNCTION_CHOICE, custom: FUNCTION_CHOICE };
/** The search is chosen as one of several allowed tools only. */
const RESPONSE_CHOICES = { ...CALLER_CHOICES, web_search: allowFields({ type: allowAny }) };

/** Filters a Responses request. Of OpenAI's own tools only the web search is priced. */
export const responsesFilter = allowFields({
  ...SAMPLING,
  model,
  input: allowEach(
    allowByType(
      'Items',
      {
        message: allowFields({ type: allowAny, role: allowAny, phase: allowAny, content: allowEach(responsePart) }),
        function_call: allowFields({ type: allowAny, call_id: allowAny, name: allowAny, arguments: allowAny }),
        custom_tool_call: allowFields({ type: allowAny, call_id: allowAny, name: allowAny, input: allowAny }),
        function_call_output: toolOutput,
        custom_tool_call_output: toolOutput,
        reasoning: allowFields({ type: allowAny, id: allowAny, summary: allowAny, encrypted_content: allowAny }),
        web_search_call: allowFields({ type: allowAny, id: allowAny, status: allowAny, action: allowAny }),
      },
      () => 'message',
    ),
  ),
  instructions: allowAny,
  max_output_tokens: allowAny,
  max_tool_calls: allowAny,
  reasoning: allowFields({ effort: allowAny, summary: allowAny }),
  text: allowFields({ format: allowFields({ type: allowAny, ...SCHEMA }), verbosity: allowAny }),
  include: allowAny,
  truncation: allowAny,
  store: allowOnlyFalse,
  stream_options: allowFields({ include_obfuscation: allowAny }),
  tools: allowEach(
    allowByType('Tools', {
      function: allowFields({
        type: allowAny,
        name: allowAny,
        description: allowAny,
        parameters: allowAny,
        strict: allowAny,
      }),
      custom: allowFields({
        type: allowAny,
        name: allowAny,
        description: allowAny,
        format: allowFields({ type: allowAny, ...GRAMMAR }),
      }),
      web_search: allowFields({
        type: allowAny,
        filters: allowFields({ allowed_domains: allowAny }),
        user_location: allowAny,
        external_web_access: allowAny,
      }),
    }),
  ),
  tool_choice: allowByType('Tool choices', {
    ...CALLER_CHOICES,
    allowed_tools: allowFields({
      type: allowAny,
      mode: allowAny,
      tools: allowEach(allowByType('Tools', RESPONSE_CHOICES)),
    }),
  }),
});

export const embeddingsFilter = allowFields({
  model: allowAny,
  input: allowAny,
  encoding_format: allowAny,
  dimensions: allowAny,
  user: allowAny,
});
