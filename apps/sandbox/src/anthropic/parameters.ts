/** Validates the parameters of a Messages request, apart from the turns, as Anthropic does. */
import type { ApplyRule } from '../provider/leniency.ts';
import { assertEnforceable } from './enforceable-schema.ts';
import { invalidRequestError, type Version } from './errors.ts';
import type { AnthropicModel } from './models.ts';

type Body = Readonly<Record<string, unknown>>;
type Check = (value: unknown, name: string) => void;

const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', assertText],
  ['messages', assertList],
  ['max_tokens', createIntegerCheck(1)],
  ['system', assertTextOrList],
  ['stream', assertBoolean],
  ['temperature', createDecimalCheck(0, 1)],
  ['top_p', createDecimalCheck(0, 1)],
  ['top_k', createIntegerCheck(0)],
  ['stop_sequences', assertStopSequences],
  ['metadata', assertObject],
  ['tools', assertList],
  ['tool_choice', assertObject],
  ['thinking', assertObject],
  ['output_config', assertObject],
  ['service_tier', assertText],
  ['cache_control', assertObject],
  ['container', assertTextOrObject],
  ['inference_geo', assertText],
]);

/** Parameters that the sandbox itself uses. They are valid even if the provider's rules are not applied. */
const USED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'stream',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
]);

const SAMPLING: ReadonlySet<string> = new Set(['temperature', 'top_p', 'top_k']);

/** @throws HttpError 400 */
export function assertParameters(body: Body, version: Version, applyRule: ApplyRule): void {
  for (const name of ['model', 'max_tokens', 'messages']) {
    if (body[name] === undefined) throw invalidRequestError(`${name}: Field required`);
  }
  for (const [name, value] of Object.entries(body)) {
    const check = SAMPLING.has(name) && version !== '2023-06-01' ? rejectExtra : (CHECKS.get(name) ?? rejectExtra);
    if (USED.has(name)) check(value, name);
    else applyRule(() => check(value, name));
  }
  for (const assert of [assertSampling, assertSystem, assertThinking, assertFormat]) applyRule(() => assert(body));
}

function rejectExtra(_: unknown, name: string): never {
  throw invalidRequestError(`${name}: Extra inputs are not permitted`);
}

function assertSampling({ temperature, top_p }: Body): void {
  if (temperature === undefined || top_p === undefined) return;
  throw invalidRequestError('`temperature` and `top_p` cannot both be specified for this model. Please use only one.');
}

/** Validates the limit, thinking, sampling and effort, which differ between models. @throws HttpError 400 */
export function assertModelSupports(body: Body, model: AnthropicModel): void {
  const { id, adaptive, maxOutput } = model;
  if ((body.max_tokens as number) > maxOutput) {
    const which = `the maximum allowed number of output tokens for ${id}`;
    throw invalidRequestError(`max_tokens: ${body.max_tokens} > ${maxOutput}, which is ${which}`);
  }
  const { type } = (body.thinking ?? {}) as Body;
  assertThinkingOff(type, model);
  assertToolChoice(body.tool_choice, model);
  if (adaptive && type === 'enabled') {
    throw invalidRequestError(
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    );
  }
  const sampling = [...SAMPLING].find((name) => body[name] !== undefined);
  if (adaptive && sampling) throw invalidRequestError(`\`${sampling}\` is deprecated for this model.`);
  const isOlderModel = /-4-5/.test(id);
  if (isOlderModel && type === 'adaptive')
    throw invalidRequestError('adaptive thinking is not supported on this model');
  const { effort } = (body.output_config ?? {}) as Body;
  if (effort === undefined) return;
  if (isOlderModel && !id.includes('opus'))
    throw invalidRequestError('This model does not support the effort parameter.');
  const efforts = ['low', 'medium', 'high', ...(adaptive ? ['xhigh'] : []), ...(isOlderModel ? [] : ['max'])];
  if (!efforts.includes(effort as string)) {
    throw invalidRequestError(
      `output_config.effort: Input should be ${efforts.map((allowed) => `'${allowed}'`).join(', ')}`,
    );
  }
}

function assertThinkingOff(type: unknown, { id, thinkingOff = 'disabled' }: AnthropicModel): void {
  if ((type !== 'disabled' && type !== 'between_tools') || type === thinkingOff) return;
  const hint = thinkingOff === 'never' ? 'Thinking cannot be disabled.' : `Use "thinking.type.${thinkingOff}" instead.`;
  throw invalidRequestError(`"thinking.type.${type}" is not supported for ${id}. ${hint}`);
}

function assertToolChoice(choice: unknown, { rejectsForcedTools }: AnthropicModel): void {
  const { type } = (choice ?? {}) as Body;
  if (rejectsForcedTools && (type === 'any' || type === 'tool'))
    throw invalidRequestError(`tool_choice.type: "${type}" is not supported for this model. Use "auto" or "none".`);
}

function assertSystem({ system }: Body): void {
  const blocks = Array.isArray(system) ? system : [];
  if (blocks.some((block) => block?.type !== 'text'))
    throw invalidRequestError("system: Input should be a list of 'text' blocks");
  if (blocks.some(({ text }) => text === ''))
    throw invalidRequestError('system: text content blocks must be non-empty');
}

function assertThinking({ thinking, max_tokens, temperature, top_k }: Body): void {
  const { type, budget_tokens, display } = (thinking ?? { type: 'disabled' }) as Body;
  if (!['enabled', 'adaptive', 'disabled', 'between_tools'].includes(type as string)) {
    throw invalidRequestError(
      `thinking: Input tag '${type}' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'`,
    );
  }
  if (type === 'disabled' || type === 'between_tools') return;
  if (display !== undefined && display !== 'omitted' && display !== 'summarized') {
    throw invalidInputError(`thinking.${type}.display`, "'summarized' or 'omitted'");
  }
  if (type === 'adaptive' && budget_tokens !== undefined) {
    throw invalidRequestError('thinking.adaptive.budget_tokens: Extra inputs are not permitted');
  }
  if (type === 'enabled') createIntegerCheck(1_024)(budget_tokens, 'thinking.enabled.budget_tokens');
  if (type === 'enabled' && (budget_tokens as number) >= (max_tokens as number)) {
    throw invalidRequestError('`max_tokens` must be greater than `thinking.budget_tokens`.');
  }
  if (temperature !== undefined && temperature !== 1) {
    throw invalidRequestError('`temperature` may only be set to 1 when thinking is enabled.');
  }
  if (top_k !== undefined) throw invalidRequestError('`top_k` must be unset when thinking is enabled.');
}

function assertFormat({ output_config }: Body): void {
  const { format } = (output_config ?? {}) as { readonly format?: Body | null };
  if (!format) return;
  if (format.type !== 'json_schema')
    throw invalidRequestError("output_config.format.type: Input should be 'json_schema'");
  if (format.schema === undefined) throw invalidRequestError('output_config.format.schema: Field required');
  assertEnforceable(format.schema, 'output_config.format.schema');
}

function invalidInputError(name: string, expected: string) {
  return invalidRequestError(`${name}: Input should be ${expected}`);
}

function assertText(value: unknown, name: string): void {
  if (typeof value !== 'string') throw invalidInputError(name, 'a valid string');
}

function assertBoolean(value: unknown, name: string): void {
  if (typeof value !== 'boolean') throw invalidInputError(name, 'a valid boolean');
}

function assertList(value: unknown, name: string): void {
  if (!Array.isArray(value)) throw invalidInputError(name, 'a valid list');
}

function assertObject(value: unknown, name: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidInputError(name, 'an object');
}

function assertTextOrList(value: unknown, name: string): void {
  if (typeof value !== 'string') assertList(value, name);
}

function assertTextOrObject(value: unknown, name: string): void {
  if (typeof value !== 'string') assertObject(value, name);
}

function assertStopSequences(value: unknown, name: string): void {
  assertList(value, name);
  if ((value as readonly unknown[]).some((sequence) => typeof sequence !== 'string' || sequence.trim() === '')) {
    throw invalidRequestError(`${name}: each stop sequence must contain non-whitespace`);
  }
}

function createIntegerCheck(min: number): Check {
  return (value, name) => {
    if (!Number.isInteger(value)) throw invalidInputError(name, 'a valid integer');
    if ((value as number) < min) throw invalidInputError(name, `greater than or equal to ${min}`);
  };
}

function createDecimalCheck(min: number, max: number): Check {
  return (value, name) => {
    if (typeof value !== 'number') throw invalidInputError(name, 'a valid number');
    if (value < min || value > max) throw invalidRequestError(`${name}: range: ${min}..${max}`);
  };
}
