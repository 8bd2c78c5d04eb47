/** What Anthropic accepts in a Messages request, apart from the turns, and how it refuses everything else. */
import { invalid, type Version } from './errors.ts';
import type { AnthropicModel } from './models.ts';

type Body = Readonly<Record<string, unknown>>;
type Check = (value: unknown, name: string) => void;

const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', text],
  ['messages', list],
  ['max_tokens', integer(1)],
  ['system', textOrList],
  ['stream', boolean],
  ['temperature', decimal(0, 1)],
  ['top_p', decimal(0, 1)],
  ['top_k', integer(0)],
  ['stop_sequences', stops],
  ['metadata', object],
  ['tools', list],
  ['tool_choice', object],
  ['thinking', object],
  ['output_config', object],
  ['service_tier', text],
  ['cache_control', object],
  ['container', textOrObject],
  ['inference_geo', text],
]);

const SAMPLING: ReadonlySet<string> = new Set(['temperature', 'top_p', 'top_k']);

/** @throws Refusal */
export function assertParameters(body: Body, version: Version): void {
  for (const name of ['model', 'max_tokens', 'messages']) {
    if (body[name] === undefined) throw invalid(`${name}: Field required`);
  }
  for (const [name, value] of Object.entries(body)) {
    const check = CHECKS.get(name);
    if (!check || (SAMPLING.has(name) && version !== '2023-06-01')) {
      throw invalid(`${name}: Extra inputs are not permitted`);
    }
    check(value, name);
  }
  if (body.temperature !== undefined && body.top_p !== undefined) {
    throw invalid('`temperature` and `top_p` cannot both be specified for this model. Please use only one.');
  }
  assertSystem(body);
  assertThinking(body);
  assertFormat(body);
}

/** What differs between models. @throws Refusal */
export function assertModelTakes(body: Body, { id, adaptive }: AnthropicModel): void {
  const { type } = (body.thinking ?? {}) as Body;
  if (adaptive && type === 'enabled') {
    throw invalid(
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    );
  }
  const sampling = [...SAMPLING].find((name) => body[name] !== undefined);
  if (adaptive && sampling) throw invalid(`\`${sampling}\` is deprecated for this model.`);
  const before = /-4-5/.test(id);
  if (before && type === 'adaptive') throw invalid('adaptive thinking is not supported on this model');
  const { effort } = (body.output_config ?? {}) as Body;
  if (effort === undefined) return;
  if (before && !id.includes('opus')) throw invalid('This model does not support the effort parameter.');
  const efforts = ['low', 'medium', 'high', ...(adaptive ? ['xhigh'] : []), ...(before ? [] : ['max'])];
  if (!efforts.includes(effort as string)) {
    throw invalid(`output_config.effort: Input should be ${efforts.map((each) => `'${each}'`).join(', ')}`);
  }
}

function assertSystem({ system }: Body): void {
  const blocks = Array.isArray(system) ? system : [];
  if (blocks.some((block) => block?.type !== 'text')) throw invalid("system: Input should be a list of 'text' blocks");
  if (blocks.some(({ text }) => text === '')) throw invalid('system: text content blocks must be non-empty');
}

function assertThinking({ thinking, max_tokens, temperature, top_k }: Body): void {
  const { type, budget_tokens, display } = (thinking ?? { type: 'disabled' }) as Body;
  if (!['enabled', 'adaptive', 'disabled'].includes(type as string)) {
    throw invalid(
      `thinking: Input tag '${type}' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'`,
    );
  }
  if (type === 'disabled') return;
  if (display !== undefined && display !== 'omitted' && display !== 'summarized') {
    throw wrong(`thinking.${type}.display`, "'summarized' or 'omitted'");
  }
  if (type === 'adaptive' && budget_tokens !== undefined) {
    throw invalid('thinking.adaptive.budget_tokens: Extra inputs are not permitted');
  }
  if (type === 'enabled') integer(1_024)(budget_tokens, 'thinking.enabled.budget_tokens');
  if (type === 'enabled' && (budget_tokens as number) >= (max_tokens as number)) {
    throw invalid('`max_tokens` must be greater than `thinking.budget_tokens`.');
  }
  if (temperature !== undefined && temperature !== 1) {
    throw invalid('`temperature` may only be set to 1 when thinking is enabled.');
  }
  if (top_k !== undefined) throw invalid('`top_k` must be unset when thinking is enabled.');
}

function assertFormat({ output_config }: Body): void {
  const { format } = (output_config ?? {}) as { readonly format?: Body | null };
  if (!format) return;
  if (format.type !== 'json_schema') throw invalid("output_config.format.type: Input should be 'json_schema'");
  if (format.schema === undefined) throw invalid('output_config.format.schema: Field required');
  if (hasOpenObject(format.schema)) {
    throw invalid(
      "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    );
  }
}

function hasOpenObject(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  const { type, additionalProperties } = schema as Body;
  return (type === 'object' && additionalProperties !== false) || Object.values(schema).some(hasOpenObject);
}

function wrong(name: string, expected: string) {
  return invalid(`${name}: Input should be ${expected}`);
}

function text(value: unknown, name: string): void {
  if (typeof value !== 'string') throw wrong(name, 'a valid string');
}

function boolean(value: unknown, name: string): void {
  if (typeof value !== 'boolean') throw wrong(name, 'a valid boolean');
}

function list(value: unknown, name: string): void {
  if (!Array.isArray(value)) throw wrong(name, 'a valid list');
}

function object(value: unknown, name: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(name, 'an object');
}

function textOrList(value: unknown, name: string): void {
  if (typeof value !== 'string') list(value, name);
}

function textOrObject(value: unknown, name: string): void {
  if (typeof value !== 'string') object(value, name);
}

function stops(value: unknown, name: string): void {
  list(value, name);
  if ((value as readonly unknown[]).some((each) => typeof each !== 'string' || each.trim() === '')) {
    throw invalid(`${name}: each stop sequence must contain non-whitespace`);
  }
}

function integer(least: number): Check {
  return (value, name) => {
    if (!Number.isInteger(value)) throw wrong(name, 'a valid integer');
    if ((value as number) < least) throw wrong(name, `greater than or equal to ${least}`);
  };
}

function decimal(least: number, most: number): Check {
  return (value, name) => {
    if (typeof value !== 'number') throw wrong(name, 'a valid number');
    if (value < least || value > most) throw invalid(`${name}: range: ${least}..${most}`);
  };
}
