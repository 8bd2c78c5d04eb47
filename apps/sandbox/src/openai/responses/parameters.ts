/** What OpenAI accepts in a request for a response, apart from its input, and how it refuses everything else. */
import { isObject, type SandboxContentPart } from '../chat-request.ts';
import { refusal } from '../errors.ts';
import type { OpenAiModel } from '../models.ts';
import {
  array,
  assertEffort,
  assertNoSampling,
  boolean,
  decimal,
  given,
  integer,
  object,
  oneOf,
  type ParameterCheck,
  type SandboxBody,
  text,
  textOrObject,
  wrongType,
  wrongValue,
} from '../parameters.ts';

/** OpenAI makes no response that could be shorter. */
const LEAST_OUTPUT = 16;
const ENCRYPTED = 'reasoning.encrypted_content';
const LOGPROBS = 'message.output_text.logprobs';

const INCLUDABLE = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  ENCRYPTED,
  LOGPROBS,
];

const CHECKS: ReadonlyMap<string, ParameterCheck> = new Map<string, ParameterCheck>([
  ['model', text],
  ['input', input],
  ['instructions', text],
  ['stream', boolean],
  ['stream_options', object],
  ['max_output_tokens', integer(LEAST_OUTPUT)],
  ['max_tool_calls', integer(1)],
  ['temperature', decimal(0, 2)],
  ['top_p', decimal(0, 1)],
  ['top_logprobs', integer(0, 20)],
  ['text', object],
  ['tools', array],
  ['tool_choice', textOrObject],
  ['parallel_tool_calls', boolean],
  ['reasoning', object],
  ['include', array],
  ['truncation', oneOf('auto', 'disabled')],
  ['metadata', object],
  ['store', boolean],
  ['background', boolean],
  ['previous_response_id', text],
  ['conversation', textOrObject],
  ['prompt', object],
  ['user', text],
  ['safety_identifier', text],
  ['service_tier', oneOf('auto', 'default', 'flex', 'scale', 'priority')],
  ['prompt_cache_key', text],
  ['prompt_cache_retention', oneOf('in_memory', '24h')],
]);

const SUMMARY = oneOf('auto', 'concise', 'detailed');
const VERBOSITY = oneOf('low', 'medium', 'high');

/** What a request wants to have beside the text. */
export interface Extras {
  readonly summary: boolean;
  readonly encrypted: boolean;
  /** How many alternatives to each token; undefined for no log probabilities at all. */
  readonly logprobs: number | undefined;
}

/** @throws Refusal */
export function assertParameters(body: SandboxBody): void {
  for (const name in body) {
    const check = CHECKS.get(name);
    if (!check) throw refusal(400, `Unknown parameter: '${name}'.`, name, 'unknown_parameter');
    const value = body[name];
    if (value !== null) check(value, name);
  }
  if (given(body.previous_response_id)) {
    const message = `Previous response with id '${body.previous_response_id}' not found.`;
    throw refusal(400, message, 'previous_response_id', 'previous_response_not_found');
  }
  if (body.stream_options && !body.stream) {
    throw refusal(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options');
  }
  assertFormat(body.text as SandboxContentPart | null | undefined);
}

/** The most tokens that a response may have. @throws Refusal */
export function outputLimit({ max_output_tokens }: SandboxBody, { id, maxOutput }: OpenAiModel): number {
  const limit = (max_output_tokens ?? maxOutput) as number;
  if (limit <= maxOutput) return limit;
  const message = `max_output_tokens is too large: ${limit}. The model ${id} supports at most ${maxOutput} tokens.`;
  throw refusal(400, message, 'max_output_tokens', 'invalid_value');
}

/** @throws Refusal when the model does not have it */
export function extrasOf(body: SandboxBody, model: OpenAiModel): Extras {
  const { reasoning, include, top_logprobs } = body;
  const { reasons } = model;
  const { effort, summary } = (reasoning ?? {}) as SandboxContentPart;
  if (given(reasoning) && !reasons && (given(effort) || given(summary))) {
    const param = given(effort) ? 'reasoning.effort' : 'reasoning.summary';
    const message = `Unsupported parameter: '${param}' is not supported with this model.`;
    throw refusal(400, message, param, 'unsupported_parameter');
  }
  if (given(effort)) assertEffort(effort, model, 'reasoning.effort');
  if (given(summary)) SUMMARY(summary, 'reasoning.summary');
  const included = (include ?? []) as readonly unknown[];
  for (const [at, each] of included.entries())
    if (!INCLUDABLE.includes(each as string)) throw wrongValue(`include[${at}]`, each, INCLUDABLE);
  const encrypted = included.includes(ENCRYPTED);
  if (encrypted && !reasons) throw refusal(400, 'Encrypted content is not supported with this model.', 'include');
  if (reasons) assertNoSampling(body);
  const wantsLogprobs = included.includes(LOGPROBS);
  if ((wantsLogprobs || given(top_logprobs)) && reasons)
    throw refusal(400, 'logprobs are not supported with reasoning models.', 'include', 'unsupported_parameter');
  return { summary: given(summary), encrypted, logprobs: wantsLogprobs ? Number(top_logprobs ?? 0) : undefined };
}

function assertFormat(config: SandboxContentPart | null | undefined): void {
  if (given(config?.verbosity)) VERBOSITY(config?.verbosity, 'text.verbosity');
  const format = config?.format;
  if (!given(format)) return;
  if (!isObject(format)) throw wrongType('text.format', 'an object', format);
  const types = ['text', 'json_object', 'json_schema'];
  if (!types.includes(format.type as string)) throw wrongValue('text.format.type', format.type, types);
  if (format.type !== 'json_schema') return;
  for (const field of ['name', 'schema']) if (!given(format[field])) throw missing(`text.format.${field}`);
}

export function missing(param: string) {
  return refusal(400, `Missing required parameter: '${param}'.`, param, 'missing_required_parameter');
}

function input(value: unknown, name: string): void {
  if (typeof value !== 'string' && !Array.isArray(value))
    throw wrongType(name, 'one of a string or array of input items', value);
}
