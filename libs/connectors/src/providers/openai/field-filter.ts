/**
 * What goes to vendors that speak OpenAI's protocol. Not listed, since it would change what is billed: `service_tier`,
 * `prediction`, `audio` and any modality but text, `web_search_options`, `store`, `prompt_cache_retention`, and a router's
 * `plugins`, `models`, `route`, `transforms` and `preset`.
 * https://platform.openai.com/docs/api-reference/chat/create, https://openrouter.ai/docs/api-reference/parameters
 */
import {
  type Allowed,
  anything,
  byType,
  fields,
  list,
  refused,
  unsupported,
  wordsOf,
} from '../../http/field-filter.ts';
import type { Dialect } from './dialect.ts';

type Rules = Readonly<Record<string, Allowed>>;

function named(names: readonly string[]): Rules {
  return Object.fromEntries(names.map((name) => [name, anything]));
}

/** A mark for the cache. Its life is left out: the long one costs more than what is charged for it. */
const mark = fields({ type: anything });

/** A router searches when the name of the model says so, and bills for it; searches that we charge go another way. */
const model: Allowed = (value, at) => {
  if (typeof value !== 'string' || !/:\s*online\s*(:|$)/i.test(value)) return value;
  throw refused(`The model "${value}" cannot be asked for: ":online" is not for upstreams`, at);
};

/** Routing, which a router takes from the caller; what it may cost is always said with it (`max_price`). */
const routing = fields(
  named([
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

const FUNCTION = fields({ name: anything, description: anything, parameters: anything, strict: anything });
const GRAMMAR = { syntax: anything, definition: anything };
const CUSTOM = fields({
  name: anything,
  description: anything,
  format: fields({ type: anything, grammar: fields(GRAMMAR) }),
});
const NAMED = fields({ name: anything });
/** What an answer must be like; a schema is whatever it is. */
const SCHEMA = { name: anything, description: anything, schema: anything, strict: anything };

const ALLOWED = {
  function: fields({ type: anything, function: NAMED }),
  custom: fields({ type: anything, custom: NAMED }),
};

/** Words, and objects that name a tool of the request. */
const chatToolChoice = byType('Choices of tools', {
  ...ALLOWED,
  allowed_tools: fields({
    type: anything,
    allowed_tools: fields({ mode: anything, tools: list(byType('Tools', ALLOWED)) }),
  }),
});

/** A file in the request itself: how long others are is known to nobody, and they would be the house's. */
const FILE_FIELDS = {
  filename: anything,
  file_data: anything,
  file_id: unsupported('Files by id'),
  file_url: unsupported('Files by address'),
};
const FILE = fields(FILE_FIELDS);

const SAMPLING = {
  temperature: anything,
  top_p: anything,
  top_logprobs: anything,
  parallel_tool_calls: anything,
  user: anything,
  metadata: anything,
  stream: anything,
};

/** Fields of a message beside what every vendor knows, where nothing is said of the vendor. */
const USUAL = ['name'];

/** A request for a chat completion, in a vendor's dialect. */
export function allowedChat({ messages = USUAL }: Dialect): Allowed {
  const marked: Rules = messages.includes('cache_control') ? { cache_control: mark } : {};
  const part = (name: string, rule: Allowed) => fields({ type: anything, [name]: rule, ...marked });
  const content = list(
    byType('Content parts', {
      text: part('text', anything),
      refusal: part('refusal', anything),
      image_url: part('image_url', fields({ url: anything, detail: anything })),
      file: part('file', FILE),
      input_audio: part('input_audio', fields({ data: anything, format: anything })),
      video_url: part('video_url', fields({ url: anything })),
    }),
  );
  const message = fields({
    role: anything,
    content,
    tool_call_id: anything,
    tool_calls: list(
      fields({
        id: anything,
        index: anything,
        type: anything,
        function: fields({ name: anything, arguments: anything }),
        custom: fields({ name: anything, input: anything }),
      }),
    ),
    ...named(messages),
    ...marked,
  });
  const tool = (name: string, rule: Allowed) => fields({ type: anything, [name]: rule, ...marked });
  const tools = byType('Tools', { function: tool('function', FUNCTION), custom: tool('custom', CUSTOM) }, (thing) =>
    'function' in thing ? 'function' : undefined,
  );
  return fields({
    ...SAMPLING,
    model,
    messages: list(message),
    stream_options: fields({ include_usage: anything }),
    max_tokens: anything,
    max_completion_tokens: anything,
    top_k: anything,
    min_p: anything,
    stop: anything,
    n: anything,
    seed: anything,
    frequency_penalty: anything,
    presence_penalty: anything,
    repetition_penalty: anything,
    logprobs: anything,
    logit_bias: anything,
    response_format: fields({ type: anything, json_schema: fields(SCHEMA) }),
    tools: list(tools),
    tool_choice: chatToolChoice,
    modalities: wordsOf('Answers', ['text']),
    reasoning: fields(named(['effort', 'max_tokens', 'exclude', 'enabled'])),
    reasoning_effort: anything,
    verbosity: anything,
    provider: routing,
  });
}

/** Nothing is kept there: we keep it. */
const ifFalse: Allowed = (value) => (value === false ? value : undefined);

const responsePart = byType('Content parts', {
  input_text: fields({ type: anything, text: anything }),
  output_text: fields({ type: anything, text: anything }),
  refusal: fields({ type: anything, refusal: anything }),
  input_image: fields({ type: anything, image_url: anything, detail: anything }),
  input_file: fields({ type: anything, ...FILE_FIELDS }),
  input_audio: fields({ type: anything, input_audio: fields({ data: anything, format: anything }) }),
});

/** What a tool has answered. */
const toolOutput = fields({ type: anything, call_id: anything, output: list(responsePart) });
const FUNCTION_CHOICE = fields({ type: anything, name: anything });
const RESPONSE_CHOICES = { function: FUNCTION_CHOICE, custom: FUNCTION_CHOICE, web_search: fields({ type: anything }) };

/** A request for a response. The one tool of OpenAI's own is the search that we have a price for. */
export const allowedResponses = fields({
  ...SAMPLING,
  model,
  input: list(
    byType(
      'Items',
      {
        message: fields({ type: anything, role: anything, phase: anything, content: list(responsePart) }),
        function_call: fields({ type: anything, call_id: anything, name: anything, arguments: anything }),
        custom_tool_call: fields({ type: anything, call_id: anything, name: anything, input: anything }),
        function_call_output: toolOutput,
        custom_tool_call_output: toolOutput,
        reasoning: fields({ type: anything, id: anything, summary: anything, encrypted_content: anything }),
        web_search_call: fields({ type: anything, id: anything, status: anything, action: anything }),
      },
      () => 'message',
    ),
  ),
  instructions: anything,
  max_output_tokens: anything,
  max_tool_calls: anything,
  reasoning: fields({ effort: anything, summary: anything }),
  text: fields({ format: fields({ type: anything, ...SCHEMA }), verbosity: anything }),
  include: anything,
  truncation: anything,
  store: ifFalse,
  stream_options: fields({ include_obfuscation: anything }),
  tools: list(
    byType('Tools', {
      function: fields({
        type: anything,
        name: anything,
        description: anything,
        parameters: anything,
        strict: anything,
      }),
      custom: fields({
        type: anything,
        name: anything,
        description: anything,
        format: fields({ type: anything, ...GRAMMAR }),
      }),
      web_search: fields({ type: anything, filters: anything, user_location: anything, external_web_access: anything }),
    }),
  ),
  tool_choice: byType('Choices of tools', {
    ...RESPONSE_CHOICES,
    allowed_tools: fields({
      type: anything,
      mode: anything,
      tools: list(byType('Tools', RESPONSE_CHOICES)),
    }),
  }),
});

export const allowedEmbeddings = fields({
  model: anything,
  input: anything,
  encoding_format: anything,
  dimensions: anything,
  user: anything,
});
