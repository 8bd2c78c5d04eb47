/** Validates the parameters of a Responses request, apart from its input items, as OpenAI does. */
import { isObject, type SandboxContentPart } from '../chat-request.ts';
import { invalidRequestError } from '../errors.ts';
import type { OpenAiModel } from '../models.ts';
import {
  assertArray,
  assertBoolean,
  assertEffort,
  assertNoSampling,
  assertObject,
  assertText,
  assertTextOrObject,
  createChoiceCheck,
  createDecimalCheck,
  createIntegerCheck,
  invalidTypeError,
  invalidValueError,
  isPresent,
  type ParameterCheck,
  reasonsWith,
  type SandboxBody,
} from '../parameters.ts';

/** OpenAI rejects lower output limits. */
const MIN_OUTPUT_TOKENS = 16;
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
  ['model', assertText],
  ['input', assertInput],
  ['instructions', assertText],
  ['stream', assertBoolean],
  ['stream_options', assertObject],
  ['max_output_tokens', createIntegerCheck(MIN_OUTPUT_TOKENS)],
  ['max_tool_calls', createIntegerCheck(1)],
  ['temperature', createDecimalCheck(0, 2)],
  ['top_p', createDecimalCheck(0, 1)],
  ['top_logprobs', createIntegerCheck(0, 20)],
  ['text', assertObject],
  ['tools', assertArray],
  ['tool_choice', assertTextOrObject],
  ['parallel_tool_calls', assertBoolean],
  ['reasoning', assertObject],
  ['include', assertArray],
  ['truncation', createChoiceCheck('auto', 'disabled')],
  ['metadata', assertObject],
  ['store', assertBoolean],
  ['background', assertBoolean],
  ['previous_response_id', assertText],
  ['conversation', assertTextOrObject],
  ['prompt', assertObject],
  ['user', assertText],
  ['safety_identifier', assertText],
  ['service_tier', createChoiceCheck('auto', 'default', 'flex', 'scale', 'priority')],
  ['prompt_cache_key', assertText],
  ['prompt_cache_retention', createChoiceCheck('in_memory', '24h')],
]);

const SUMMARY = createChoiceCheck('auto', 'concise', 'detailed');
const VERBOSITY = createChoiceCheck('low', 'medium', 'high');

/** Additional output that the request enables. */
export interface Extras {
  readonly summary: boolean;
  readonly encrypted: boolean;
  /** Number of alternatives that are listed for each token; undefined without log probabilities. */
  readonly logprobs: number | undefined;
}

/** @throws HttpError 400 for an unknown or invalid parameter */
export function assertParameters(body: SandboxBody): void {
  for (const name in body) {
    const check = CHECKS.get(name);
    if (!check) throw invalidRequestError(400, `Unknown parameter: '${name}'.`, name, 'unknown_parameter');
    const value = body[name];
    if (value !== null) check(value, name);
  }
  if (isPresent(body.previous_response_id)) {
    const message = `Previous response with id '${body.previous_response_id}' not found.`;
    throw invalidRequestError(400, message, 'previous_response_id', 'previous_response_not_found');
  }
  if (body.stream_options && !body.stream) {
    throw invalidRequestError(
      400,
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      'stream_options',
    );
  }
  assertFormat(body.text as SandboxContentPart | null | undefined);
}

/** Returns the maximum number of tokens of a response. @throws HttpError 400 */
export function getOutputLimit({ max_output_tokens }: SandboxBody, { id, maxOutput }: OpenAiModel): number {
  const limit = (max_output_tokens ?? maxOutput) as number;
  if (limit <= maxOutput) return limit;
  const message = `max_output_tokens is too large: ${limit}. The model ${id} supports at most ${maxOutput} tokens.`;
  throw invalidRequestError(400, message, 'max_output_tokens', 'invalid_value');
}

/** @throws HttpError if an extra, the effort or a sampling parameter is invalid, or the model does not support it */
export function parseExtras(body: SandboxBody, model: OpenAiModel): Extras {
  const { reasoning, include, top_logprobs } = body;
  const { reasons } = model;
  const { effort, summary } = (reasoning ?? {}) as SandboxContentPart;
  if (isPresent(reasoning) && !reasons && (isPresent(effort) || isPresent(summary))) {
    const param = isPresent(effort) ? 'reasoning.effort' : 'reasoning.summary';
    const message = `Unsupported parameter: '${param}' is not supported with this model.`;
    throw invalidRequestError(400, message, param, 'unsupported_parameter');
  }
  if (isPresent(effort)) assertEffort(effort, model, 'reasoning.effort');
  if (isPresent(summary)) SUMMARY(summary, 'reasoning.summary');
  const included = (include ?? []) as readonly unknown[];
  for (const [at, value] of included.entries())
    if (!INCLUDABLE.includes(value as string)) throw invalidValueError(`include[${at}]`, value, INCLUDABLE);
  const encrypted = included.includes(ENCRYPTED);
  if (encrypted && !reasons)
    throw invalidRequestError(400, 'Encrypted content is not supported with this model.', 'include');
  const rejectsSampling = reasonsWith(effort, model);
  if (rejectsSampling) assertNoSampling(body);
  const includesLogprobs = included.includes(LOGPROBS);
  if ((includesLogprobs || isPresent(top_logprobs)) && rejectsSampling)
    throw invalidRequestError(
      400,
      'logprobs are not supported with reasoning models.',
      'include',
      'unsupported_parameter',
    );
  return { summary: isPresent(summary), encrypted, logprobs: includesLogprobs ? Number(top_logprobs ?? 0) : undefined };
}

function assertFormat(config: SandboxContentPart | null | undefined): void {
  if (isPresent(config?.verbosity)) VERBOSITY(config?.verbosity, 'text.verbosity');
  const format = config?.format;
  if (!isPresent(format)) return;
  if (!isObject(format)) throw invalidTypeError('text.format', 'an object', format);
  const types = ['text', 'json_object', 'json_schema'];
  if (!types.includes(format.type as string)) throw invalidValueError('text.format.type', format.type, types);
  if (format.type !== 'json_schema') return;
  for (const field of ['name', 'schema'])
    if (!isPresent(format[field])) throw missingParameterError(`text.format.${field}`);
}

export function missingParameterError(param: string) {
  return invalidRequestError(400, `Missing required parameter: '${param}'.`, param, 'missing_required_parameter');
}

function assertInput(value: unknown, name: string): void {
  if (typeof value !== 'string' && !Array.isArray(value))
    throw invalidTypeError(name, 'one of a string or array of input items', value);
}
