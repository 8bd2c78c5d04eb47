/** What OpenAI accepts in a chat completion request, apart from the messages, and how it refuses everything else. */

import { refusal } from './errors.ts';
import type { OpenAiModel, OpenAiProvider } from './models.ts';

export type SandboxBody = Readonly<Record<string, unknown>>;
export type ParameterCheck = (value: unknown, name: string) => void;

const CHECKS: ReadonlyMap<string, ParameterCheck> = new Map<string, ParameterCheck>([
  ['model', text],
  ['messages', array],
  ['stream', boolean],
  ['stream_options', object],
  ['max_tokens', integer(1)],
  ['max_completion_tokens', integer(1)],
  ['n', integer(1, 128)],
  ['temperature', decimal(0, 2)],
  ['top_p', decimal(0, 1)],
  ['frequency_penalty', decimal(-2, 2)],
  ['presence_penalty', decimal(-2, 2)],
  ['seed', integer()],
  ['stop', stop],
  ['logit_bias', object],
  ['logprobs', boolean],
  ['top_logprobs', integer(0, 20)],
  ['response_format', object],
  ['tools', array],
  ['tool_choice', textOrObject],
  ['parallel_tool_calls', boolean],
  ['functions', array],
  ['function_call', textOrObject],
  ['reasoning_effort', oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh')],
  ['verbosity', oneOf('low', 'medium', 'high')],
  ['modalities', array],
  ['audio', object],
  ['prediction', object],
  ['moderation', object],
  ['web_search_options', object],
  ['user', text],
  ['safety_identifier', text],
  ['metadata', object],
  ['store', boolean],
  ['service_tier', oneOf('auto', 'default', 'flex', 'scale', 'priority', 'fast')],
  ['prompt_cache_key', text],
  ['prompt_cache_options', object],
  ['prompt_cache_retention', oneOf('in_memory', '24h')],
]);

const SAMPLING = ['stop', 'logprobs', 'top_logprobs', 'logit_bias', 'frequency_penalty', 'presence_penalty'];

/** @throws Refusal */
export function assertParameters(body: SandboxBody, { more, lacks }: OpenAiProvider): void {
  for (const name in body) {
    if (more.has(name)) {
      if (name === 'reasoning') assertReasoning(body[name]);
      continue;
    }
    const check = CHECKS.get(name);
    if (!check || lacks.has(name)) throw unrecognised(name);
    const value = body[name];
    if (value !== null) check(value, name);
  }
  if (body.stream_options && !body.stream) {
    throw refusal(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options');
  }
}

/**
 * The most tokens that a choice may have.
 * @throws Refusal
 */
export function outputLimit(body: SandboxBody, model: OpenAiModel): number {
  const { max_tokens, max_completion_tokens, reasoning_effort } = body;
  if (model.reasons) assertNoSampling(body);
  if (model.reasons && given(max_tokens)) {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    throw refusal(400, message, 'max_tokens', 'unsupported_parameter');
  }
  if (!model.reasons && given(reasoning_effort)) throw unrecognised('reasoning_effort');
  if (given(reasoning_effort)) assertEffort(reasoning_effort, model);
  if (given(max_tokens) && given(max_completion_tokens)) {
    const message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
    throw refusal(400, message, 'max_tokens', 'invalid_parameter_combination');
  }
  const limit = (max_completion_tokens ?? max_tokens ?? model.maxOutput) as number;
  if (limit > model.maxOutput) {
    const message =
      `max_tokens is too large: ${limit}. This model supports at most ${model.maxOutput} completion tokens, ` +
      `whereas you provided ${limit}.`;
    throw refusal(400, message, given(max_tokens) ? 'max_tokens' : 'max_completion_tokens', 'invalid_value');
  }
  return limit;
}

/** What a model that reasons does not let the caller decide. */
export function assertNoSampling(body: SandboxBody): void {
  for (const name of ['temperature', 'top_p']) {
    const value = body[name];
    if (!given(value) || value === 1) continue;
    const message = `Unsupported value: '${name}' does not support ${value} with this model. Only the default (1) value is supported.`;
    throw refusal(400, message, name, 'unsupported_value');
  }
  for (const name of SAMPLING) {
    if (!given(body[name])) continue;
    const message = `Unsupported parameter: '${name}' is not supported with this model.`;
    throw refusal(400, message, name, 'unsupported_parameter');
  }
}

/** Which efforts a model has differs from generation to generation. */
function effortsOf({ id }: OpenAiModel): readonly string[] {
  if (/^o\d/.test(id)) return ['low', 'medium', 'high'];
  if (/^gpt-5(-|$)/.test(id)) return ['minimal', 'low', 'medium', 'high'];
  return id.startsWith('gpt-5.1') ? ['none', 'low', 'medium', 'high'] : ['none', 'low', 'medium', 'high', 'xhigh'];
}

export function assertEffort(effort: unknown, model: OpenAiModel, param = 'reasoning_effort'): void {
  const efforts = effortsOf(model);
  if (efforts.includes(effort as string)) return;
  const message =
    `Unsupported value: '${effort}' is not supported with the '${model.id}' model. ` +
    `Supported values are: ${efforts.map((each) => `'${each}'`).join(', ')}.`;
  throw refusal(400, message, param, 'unsupported_value');
}

/** OpenRouter's object. */
function assertReasoning(value: unknown): void {
  if (!given(value)) return;
  object(value, 'reasoning');
  const { effort, max_tokens, enabled, exclude } = value as SandboxBody;
  if (given(effort) && given(max_tokens)) {
    throw refusal(400, 'Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified', 'reasoning');
  }
  if (given(effort)) oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')(effort, 'reasoning.effort');
  if (given(max_tokens)) integer(0)(max_tokens, 'reasoning.max_tokens');
  if (given(enabled)) boolean(enabled, 'reasoning.enabled');
  if (given(exclude)) boolean(exclude, 'reasoning.exclude');
}

export function wrongType(name: string, expected: string, value: unknown) {
  const message = `Invalid type for '${name}': expected ${expected}, but got ${kindOf(value)} instead.`;
  return refusal(400, message, name, 'invalid_type');
}

export function wrongValue(name: string, value: unknown, supported: readonly string[]) {
  const list = supported.map((each) => `'${each}'`).join(', ');
  return refusal(400, `Invalid value: '${value}'. Supported values are: ${list}.`, name, 'invalid_value');
}

export function given(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function unrecognised(name: string) {
  return refusal(400, `Unrecognized request argument supplied: ${name}`);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return `a ${typeof value}`;
}

export function text(value: unknown, name: string): void {
  if (typeof value !== 'string') throw wrongType(name, 'a string', value);
}

export function boolean(value: unknown, name: string): void {
  if (typeof value !== 'boolean') throw wrongType(name, 'a boolean', value);
}

export function array(value: unknown, name: string): void {
  if (!Array.isArray(value)) throw wrongType(name, 'an array of objects', value);
}

export function object(value: unknown, name: string): void {
  if (typeof value !== 'object' || Array.isArray(value)) throw wrongType(name, 'an object', value);
}

export function textOrObject(value: unknown, name: string): void {
  if (typeof value !== 'string') object(value, name);
}

function stop(value: unknown, name: string): void {
  const stops = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(stops)) throw wrongType(name, 'one of a string or array of strings', value);
  if (stops.length > 4) {
    const message = `Invalid '${name}': array too long. Expected an array with maximum length 4, but got an array with length ${stops.length} instead.`;
    throw refusal(400, message, name, 'array_above_max_length');
  }
}

export function oneOf(...choices: readonly string[]): ParameterCheck {
  return (value, name) => {
    if (!choices.includes(value as string)) throw wrongValue(name, value, choices);
  };
}

export function integer(least = Number.MIN_SAFE_INTEGER, most = Number.MAX_SAFE_INTEGER): ParameterCheck {
  return (value, name) => {
    if (!Number.isInteger(value)) throw wrongType(name, 'an integer', value);
    within(value as number, name, [least, most], 'integer');
  };
}

export function decimal(least: number, most: number): ParameterCheck {
  return (value, name) => {
    if (typeof value !== 'number') throw wrongType(name, 'a decimal', value);
    within(value, name, [least, most], 'decimal');
  };
}

function within(value: number, name: string, [least, most]: readonly [number, number], kind: string): void {
  if (value >= least && value <= most) return;
  const [side, range] = value < least ? ['below minimum', `>= ${least}`] : ['above maximum', `<= ${most}`];
  const message = `Invalid '${name}': ${kind} ${side} value. Expected a value ${range}, but got ${value} instead.`;
  throw refusal(400, message, name, `${kind}_${value < least ? 'below_min' : 'above_max'}_value`);
}
