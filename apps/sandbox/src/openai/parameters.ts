/** Validates the parameters of a chat completion request, apart from the messages, as OpenAI does. */

import type { ApplyRule } from '../provider/leniency.ts';
import { invalidRequestError } from './errors.ts';
import type { OpenAiModel, OpenAiProvider } from './models.ts';

export type SandboxBody = Readonly<Record<string, unknown>>;
export type ParameterCheck = (value: unknown, name: string) => void;

const CHECKS: ReadonlyMap<string, ParameterCheck> = new Map<string, ParameterCheck>([
  ['model', assertText],
  ['messages', assertArray],
  ['stream', assertBoolean],
  ['stream_options', assertObject],
  ['max_tokens', createIntegerCheck(1)],
  ['max_completion_tokens', createIntegerCheck(1)],
  ['n', createIntegerCheck(1, 128)],
  ['temperature', createDecimalCheck(0, 2)],
  ['top_p', createDecimalCheck(0, 1)],
  ['frequency_penalty', createDecimalCheck(-2, 2)],
  ['presence_penalty', createDecimalCheck(-2, 2)],
  ['seed', createIntegerCheck()],
  ['stop', assertStop],
  ['logit_bias', assertObject],
  ['logprobs', assertBoolean],
  ['top_logprobs', createIntegerCheck(0, 20)],
  ['response_format', assertObject],
  ['tools', assertArray],
  ['tool_choice', assertTextOrObject],
  ['parallel_tool_calls', assertBoolean],
  ['functions', assertArray],
  ['function_call', assertTextOrObject],
  // `default` is Groq's word for Qwen.
  ['reasoning_effort', createChoiceCheck('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'default')],
  ['verbosity', createChoiceCheck('low', 'medium', 'high')],
  ['modalities', assertArray],
  ['audio', assertObject],
  ['prediction', assertObject],
  ['moderation', assertObject],
  ['web_search_options', assertObject],
  ['user', assertText],
  ['safety_identifier', assertText],
  ['metadata', assertObject],
  ['store', assertBoolean],
  ['prompt_cache_key', assertText],
  ['prompt_cache_options', assertObject],
  ['prompt_cache_retention', createChoiceCheck('in_memory', '24h')],
]);

/** Parameters that the sandbox itself uses. They are valid even if the provider's rules are not applied. */
const USED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'n',
  'top_logprobs',
  'response_format',
  'tools',
  'tool_choice',
  'reasoning',
]);

const SAMPLING = ['stop', 'logprobs', 'top_logprobs', 'logit_bias', 'frequency_penalty', 'presence_penalty'];

/** @throws HttpError 400 for an unknown or invalid parameter */
export function assertParameters(
  body: SandboxBody,
  { extraParameters, unsupportedParameters, serviceTiers }: OpenAiProvider,
  applyRule: ApplyRule,
): void {
  const checkTier = createChoiceCheck(...serviceTiers);
  for (const name in body) {
    const value = body[name];
    if (extraParameters.has(name)) {
      if (name === 'reasoning') applyRule(() => assertReasoning(value));
      continue;
    }
    const check = name === 'service_tier' ? checkTier : CHECKS.get(name);
    if (!check || unsupportedParameters.has(name)) applyRule(() => throwUnknownArgument(name));
    if (check && value !== null) applyCheck(check, { name, value, isUsed: USED.has(name) }, applyRule);
  }
  applyRule(() => assertStreamOptions(body));
}

interface CheckedParameter {
  readonly name: string;
  readonly value: unknown;
  /** Whether the sandbox itself uses it. It is then checked even if the provider's rules are not applied. */
  readonly isUsed: boolean;
}

/** @throws HttpError 400 */
export function applyCheck(
  check: ParameterCheck,
  { name, value, isUsed }: CheckedParameter,
  applyRule: ApplyRule,
): void {
  if (isUsed) check(value, name);
  else applyRule(() => check(value, name));
}

/** @throws HttpError 400 for options of a stream without one */
export function assertStreamOptions({ stream, stream_options }: SandboxBody): void {
  if (!stream_options || stream) return;
  const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
  throw invalidRequestError(400, message, 'stream_options');
}

/** Returns the maximum number of tokens of a choice. */
export function getOutputLimit({ max_tokens, max_completion_tokens }: SandboxBody, { maxOutput }: OpenAiModel): number {
  return Math.min((max_completion_tokens ?? max_tokens ?? maxOutput) as number, maxOutput);
}

/** Validates the output limit, the effort and sampling, which differ between models. @throws HttpError 400 */
export function assertModelSupports(body: SandboxBody, model: OpenAiModel): void {
  const { max_tokens, max_completion_tokens, reasoning_effort } = body;
  if (reasonsWith(reasoning_effort, model)) assertNoSampling(body);
  if (model.reasons && isPresent(max_tokens)) {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    throw invalidRequestError(400, message, 'max_tokens', 'unsupported_parameter');
  }
  if (!model.reasons && !model.efforts && isPresent(reasoning_effort)) throwUnknownArgument('reasoning_effort');
  if (isPresent(reasoning_effort)) assertEffort(reasoning_effort, model);
  if (isPresent(body.reasoning)) assertReasons(body.reasoning as SandboxBody, model);
  if (isPresent(max_tokens) && isPresent(max_completion_tokens)) {
    const message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
    throw invalidRequestError(400, message, 'max_tokens', 'invalid_parameter_combination');
  }
  const limit = (max_completion_tokens ?? max_tokens ?? model.maxOutput) as number;
  if (limit <= model.maxOutput) return;
  const message =
    `max_tokens is too large: ${limit}. This model supports at most ${model.maxOutput} completion tokens, ` +
    `whereas you provided ${limit}.`;
  throw invalidRequestError(
    400,
    message,
    isPresent(max_tokens) ? 'max_tokens' : 'max_completion_tokens',
    'invalid_value',
  );
}

/** Whether the model rejects sampling parameters in a request with this effort. */
export function reasonsWith(effort: unknown, { reasons, samples }: OpenAiModel): boolean {
  return reasons && !(samples && effort === 'none');
}

/**
 * Rejects sampling parameters, which models that reason do not accept. `temperature` and `top_p` may be 1.
 * @throws HttpError 400
 */
export function assertNoSampling(body: SandboxBody): void {
  for (const name of ['temperature', 'top_p']) {
    const value = body[name];
    if (!isPresent(value) || value === 1) continue;
    const message = `Unsupported value: '${name}' does not support ${value} with this model. Only the default (1) value is supported.`;
    throw invalidRequestError(400, message, name, 'unsupported_value');
  }
  for (const name of SAMPLING) {
    if (!isPresent(body[name])) continue;
    const message = `Unsupported parameter: '${name}' is not supported with this model.`;
    throw invalidRequestError(400, message, name, 'unsupported_parameter');
  }
}

/** The supported efforts differ between generations of models. */
function getEfforts({ id, efforts }: OpenAiModel): readonly string[] {
  if (efforts) return efforts;
  if (/^o\d/.test(id)) return ['low', 'medium', 'high'];
  if (/^gpt-5(-|$)/.test(id)) return ['minimal', 'low', 'medium', 'high'];
  return id.startsWith('gpt-5.1') ? ['none', 'low', 'medium', 'high'] : ['none', 'low', 'medium', 'high', 'xhigh'];
}

export function assertEffort(effort: unknown, model: OpenAiModel, param = 'reasoning_effort'): void {
  const efforts = getEfforts(model);
  if (efforts.includes(effort as string)) return;
  const message =
    `Unsupported value: '${effort}' is not supported with the '${model.id}' model. ` +
    `Supported values are: ${efforts.map((supported) => `'${supported}'`).join(', ')}.`;
  throw invalidRequestError(400, message, param, 'unsupported_value');
}

/** Rejects reasoning settings that disable what a model of OpenRouter always does. */
function assertReasons({ effort, enabled, max_tokens }: SandboxBody, { efforts }: OpenAiModel): void {
  if (!efforts || (effort !== 'none' && enabled !== false && max_tokens !== 0)) return;
  throw invalidRequestError(400, 'Reasoning is mandatory for this endpoint and cannot be disabled.');
}

/** Validates OpenRouter's `reasoning` object. */
function assertReasoning(value: unknown): void {
  if (!isPresent(value)) return;
  assertObject(value, 'reasoning');
  const { effort, max_tokens, enabled, exclude } = value as SandboxBody;
  if (isPresent(effort) && isPresent(max_tokens)) {
    throw invalidRequestError(
      400,
      'Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified',
      'reasoning',
    );
  }
  if (isPresent(effort))
    createChoiceCheck('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')(effort, 'reasoning.effort');
  if (isPresent(max_tokens)) createIntegerCheck(0)(max_tokens, 'reasoning.max_tokens');
  if (isPresent(enabled)) assertBoolean(enabled, 'reasoning.enabled');
  if (isPresent(exclude)) assertBoolean(exclude, 'reasoning.exclude');
}

export function invalidTypeError(name: string, expected: string, value: unknown) {
  const message = `Invalid type for '${name}': expected ${expected}, but got ${describeType(value)} instead.`;
  return invalidRequestError(400, message, name, 'invalid_type');
}

export function invalidValueError(name: string, value: unknown, supported: readonly string[]) {
  const list = supported.map((allowed) => `'${allowed}'`).join(', ');
  return invalidRequestError(400, `Invalid value: '${value}'. Supported values are: ${list}.`, name, 'invalid_value');
}

export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function throwUnknownArgument(name: string): never {
  throw invalidRequestError(400, `Unrecognized request argument supplied: ${name}`);
}

function describeType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return `a ${typeof value}`;
}

export function assertText(value: unknown, name: string): void {
  if (typeof value !== 'string') throw invalidTypeError(name, 'a string', value);
}

export function assertBoolean(value: unknown, name: string): void {
  if (typeof value !== 'boolean') throw invalidTypeError(name, 'a boolean', value);
}

export function assertArray(value: unknown, name: string): void {
  if (!Array.isArray(value)) throw invalidTypeError(name, 'an array of objects', value);
}

export function assertObject(value: unknown, name: string): void {
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidTypeError(name, 'an object', value);
}

export function assertTextOrObject(value: unknown, name: string): void {
  if (typeof value !== 'string') assertObject(value, name);
}

function assertStop(value: unknown, name: string): void {
  const stops = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(stops)) throw invalidTypeError(name, 'one of a string or array of strings', value);
  if (stops.length > 4) {
    const message = `Invalid '${name}': array too long. Expected an array with maximum length 4, but got an array with length ${stops.length} instead.`;
    throw invalidRequestError(400, message, name, 'array_above_max_length');
  }
}

export function createChoiceCheck(...choices: readonly string[]): ParameterCheck {
  return (value, name) => {
    if (!choices.includes(value as string)) throw invalidValueError(name, value, choices);
  };
}

export function createIntegerCheck(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER): ParameterCheck {
  return (value, name) => {
    if (!Number.isInteger(value)) throw invalidTypeError(name, 'an integer', value);
    assertRange(value as number, name, [min, max], 'integer');
  };
}

export function createDecimalCheck(min: number, max: number): ParameterCheck {
  return (value, name) => {
    if (typeof value !== 'number') throw invalidTypeError(name, 'a decimal', value);
    assertRange(value, name, [min, max], 'decimal');
  };
}

function assertRange(value: number, name: string, [min, max]: readonly [number, number], kind: string): void {
  if (value >= min && value <= max) return;
  const [side, range] = value < min ? ['below minimum', `>= ${min}`] : ['above maximum', `<= ${max}`];
  const message = `Invalid '${name}': ${kind} ${side} value. Expected a value ${range}, but got ${value} instead.`;
  throw invalidRequestError(400, message, name, `${kind}_${value < min ? 'below_min' : 'above_max'}_value`);
}
