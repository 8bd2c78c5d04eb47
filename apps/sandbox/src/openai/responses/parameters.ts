/** Validates the parameters of a Responses request, apart from its input items, as OpenAI does. */

import type { ApplyRule } from '../../provider/leniency.ts';
import { isObject, type SandboxContentPart } from '../chat-request.ts';
import { invalidRequestError } from '../errors.ts';
import type { OpenAiModel } from '../models.ts';
import {
  applyCheck,
  assertArray,
  assertBoolean,
  assertEffort,
  assertNoSampling,
  assertObject,
  assertStreamOptions,
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
  ['max_output_tokens', createIntegerCheck(1)],
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

/** Parameters that the sandbox itself uses. They are valid even if the provider's rules are not applied. */
const USED: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'stream',
  'stream_options',
  'max_output_tokens',
  'max_tool_calls',
  'top_logprobs',
  'text',
  'tools',
  'tool_choice',
  'reasoning',
  'include',
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
export function assertParameters(body: SandboxBody, applyRule: ApplyRule): void {
  for (const name in body) {
    const check = CHECKS.get(name);
    const value = body[name];
    if (!check) applyRule(() => throwUnknownParameter(name));
    else if (value !== null) applyCheck(check, { name, value, isUsed: USED.has(name) }, applyRule);
  }
  if (isPresent(body.previous_response_id)) {
    const message = `Previous response with id '${body.previous_response_id}' not found.`;
    throw invalidRequestError(400, message, 'previous_response_id', 'previous_response_not_found');
  }
  applyRule(() => assertStreamOptions(body));
  assertFormat(body.text as SandboxContentPart | null | undefined, applyRule);
}

function throwUnknownParameter(name: string): never {
  throw invalidRequestError(400, `Unknown parameter: '${name}'.`, name, 'unknown_parameter');
}

/** Returns the maximum number of tokens of a response. */
export function getOutputLimit({ max_output_tokens }: SandboxBody, { maxOutput }: OpenAiModel): number {
  return Math.min((max_output_tokens ?? maxOutput) as number, maxOutput);
}

export function parseExtras({ reasoning, include, top_logprobs }: SandboxBody): Extras {
  const included = (include ?? []) as readonly unknown[];
  return {
    summary: isPresent((reasoning as SandboxContentPart | null | undefined)?.summary),
    encrypted: included.includes(ENCRYPTED),
    logprobs: included.includes(LOGPROBS) ? Number(top_logprobs ?? 0) : undefined,
  };
}

/**
 * Validates the output limit, extras, the effort and sampling, which differ between models.
 * @throws HttpError 400
 */
export function assertModelSupports(body: SandboxBody, model: OpenAiModel): void {
  const { reasoning, include, top_logprobs, max_output_tokens } = body;
  createIntegerCheck(MIN_OUTPUT_TOKENS)(max_output_tokens ?? MIN_OUTPUT_TOKENS, 'max_output_tokens');
  if (Number(max_output_tokens ?? 0) > model.maxOutput) {
    const message =
      `max_output_tokens is too large: ${max_output_tokens}. ` +
      `The model ${model.id} supports at most ${model.maxOutput} tokens.`;
    throw invalidRequestError(400, message, 'max_output_tokens', 'invalid_value');
  }
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
  if (included.includes(ENCRYPTED) && !reasons)
    throw invalidRequestError(400, 'Encrypted content is not supported with this model.', 'include');
  const rejectsSampling = reasonsWith(effort, model);
  if (rejectsSampling) assertNoSampling(body);
  if ((included.includes(LOGPROBS) || isPresent(top_logprobs)) && rejectsSampling)
    throw invalidRequestError(
      400,
      'logprobs are not supported with reasoning models.',
      'include',
      'unsupported_parameter',
    );
}

function assertFormat(config: SandboxContentPart | null | undefined, applyRule: ApplyRule): void {
  if (isPresent(config?.verbosity)) applyRule(() => VERBOSITY(config?.verbosity, 'text.verbosity'));
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
