/** A model as it stands in a data file, and what an operator may write there: a slip must not give anything away. */
import { money } from '#kernel';

export type PrivacyLevel = 'anon' | 'zdr' | 'e2e';

export const MODEL_TYPES = ['chat', 'embedding', 'image', 'video', 'audio'] as const;
export type ModelType = (typeof MODEL_TYPES)[number];

export const QUANTIZATIONS = [
  'int4',
  'int8',
  'fp4',
  'mxfp4',
  'nvfp4',
  'fp6',
  'fp8',
  'mxfp8',
  'fp16',
  'bf16',
  'fp32',
  'unknown',
] as const;
export type Quantization = (typeof QUANTIZATIONS)[number];

export interface EndpointFile {
  /** Who runs it, as people call them: `OpenAI`. Unique among the endpoints of a model. */
  readonly provider: string;
  /** The configured connection it is reached by. */
  readonly upstream: string;
  /** What the upstream calls the model. */
  readonly model: string;
  readonly usdPerMillionTokens: Readonly<Record<'input' | 'output', string>> &
    Readonly<Partial<Record<'cacheRead' | 'cacheWrite' | 'reasoning', string>>>;
  readonly usdPerRequest?: string;
  readonly margin: string;
  /** Request fields that the upstream knows, or the name of a list of them. */
  readonly parameters: readonly string[] | string;
  /** Nothing of a request is kept there. */
  readonly zdr?: boolean;
  /** Requests may be used for training. */
  readonly collectsData?: boolean;
  readonly quantization?: Quantization;
  /** Expected until it has been measured: milliseconds to the first token, tokens per second. */
  readonly latencyMs?: number;
  readonly tokensPerSecond?: number;
  /** Share of tool calls that are well-formed, from 0 to 1. */
  readonly toolReliability?: number;
}

export interface ModelFile {
  readonly id: string;
  /** Other names that find it. */
  readonly aliases?: readonly string[];
  readonly type: ModelType;
  readonly name: string;
  readonly provider: string;
  readonly description: string;
  /** Day, as in `2026-11-20`. */
  readonly released: string;
  readonly popular: boolean;
  readonly privacy: PrivacyLevel;
  readonly inputs: readonly string[];
  readonly outputs?: readonly string[];
  readonly context: number;
  /** 0 where the output is not made of tokens. */
  readonly maxOutput: number;
  /** Numbers in a vector of an embedding model; fewer on request, where an endpoint has the parameter `dimensions`. */
  readonly dimensions?: number;
  /** What an image model can do. */
  readonly badges?: readonly string[];
  /** It searches the web by itself. */
  readonly searchesWeb?: boolean;
  /** Models that the suffixes `:thinking` and `:extended` lead to. */
  readonly variants?: Readonly<Partial<Record<'thinking' | 'extended', string>>>;
  /** Routing that is enforced, whatever the caller wishes; by provider. */
  readonly routing?: Readonly<Partial<Record<'order' | 'only' | 'ignore', readonly string[]>>> & {
    /** Its web search works only with endpoints that keep data. */
    readonly webSearchDropsZdr?: boolean;
  };
  readonly endpoints: readonly EndpointFile[];
}

type Rule = (value: unknown, where: string) => void;

const must =
  (what: string, holds: (value: unknown) => boolean): Rule =>
  (value, where) => {
    if (!holds(value)) throw new Error(`${where} must be ${what}`);
  };

const optional =
  (rule: Rule): Rule =>
  (value, where) => {
    if (value !== undefined) rule(value, where);
  };

/** No field may be missing, and none is there that nobody reads: a misspelt price would be no price. */
const object =
  (rules: Readonly<Record<string, Rule>>): Rule =>
  (value, where) => {
    must('an object', (it) => typeof it === 'object' && it !== null && !Array.isArray(it))(value, where);
    const fields = value as Readonly<Record<string, unknown>>;
    for (const name in fields)
      if (!Object.hasOwn(rules, name)) throw new Error(`${where} has an unknown field "${name}"`);
    for (const [name, rule] of Object.entries(rules)) rule(fields[name], `${name} of ${where}`);
  };

const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';
const text = must('a text', isText);
const texts = must('a list of texts', (value) => Array.isArray(value) && value.length > 0 && value.every(isText));
const tokens = must('a whole number above 0', (value) => Number.isSafeInteger(value) && (value as number) > 0);
const amount = must('an amount of USD as text, such as "0.25"', (value) => read(value, money.usd) >= 0n);
const factor = must('a factor as text, such as "1.055"', (value) => read(value, marginOf) > 0n);

/** Price = cost × this ÷ 10,000. */
export function marginOf(margin: string): bigint {
  return money.scaled(margin, 4);
}

/** A decimal, or -1 where it is none, or is finer than it can be kept. */
function read(value: unknown, decimal: (text: string) => bigint): bigint {
  try {
    return typeof value === 'string' ? decimal(value) : -1n;
  } catch {
    return -1n;
  }
}

function isDay(value: unknown): boolean {
  const day = new Date(`${value}T00:00:00.000Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().slice(0, 10) === value;
}

const flag = must('true or false', (value) => typeof value === 'boolean');
const oneOf = (words: readonly string[]) =>
  must(`one of ${words.join(', ')}`, (value) => words.includes(value as string));
const listOf =
  (rule: Rule): Rule =>
  (value, where) => {
    must('a list with something in it', (it) => Array.isArray(it) && it.length > 0)(value, where);
    for (const [i, each] of (value as readonly unknown[]).entries()) rule(each, `${i + 1} of ${where}`);
  };
const positive = must('a number above 0', (value) => typeof value === 'number' && value > 0);

const endpoint = object({
  provider: text,
  upstream: text,
  model: text,
  usdPerMillionTokens: object({
    input: amount,
    output: amount,
    cacheRead: optional(amount),
    cacheWrite: optional(amount),
    reasoning: optional(amount),
  }),
  usdPerRequest: optional(amount),
  margin: factor,
  parameters: (value, where) => (typeof value === 'string' ? text : texts)(value, where),
  zdr: optional(flag),
  collectsData: optional(flag),
  quantization: optional(oneOf(QUANTIZATIONS)),
  latencyMs: optional(positive),
  tokensPerSecond: optional(positive),
  toolReliability: optional(must('a share from 0 to 1', (value) => Number(value) >= 0 && Number(value) <= 1)),
});

const model = object({
  id: text,
  aliases: optional(texts),
  type: oneOf(MODEL_TYPES),
  name: text,
  provider: text,
  description: text,
  released: must('a day, such as "2026-11-20"', isDay),
  popular: flag,
  privacy: oneOf(['anon', 'zdr', 'e2e']),
  inputs: texts,
  outputs: optional(texts),
  context: tokens,
  maxOutput: must('a whole number from 0', (value) => Number.isSafeInteger(value) && (value as number) >= 0),
  dimensions: optional(tokens),
  badges: optional(texts),
  searchesWeb: optional(flag),
  variants: optional(object({ thinking: optional(text), extended: optional(text) })),
  routing: optional(
    object({
      order: optional(texts),
      only: optional(texts),
      ignore: optional(texts),
      webSearchDropsZdr: optional(flag),
    }),
  ),
  endpoints: listOf(endpoint),
});

/**
 * Checks what one data file holds.
 * @throws Error that names the model and the field
 */
export function modelsIn(data: unknown): readonly ModelFile[] {
  if (!Array.isArray(data)) throw new Error('it must be a list of models');
  data.forEach((each, i) => {
    const name = isText(each?.id) ? `model "${each.id}"` : `model ${i + 1}`;
    model(each, name);
    if (each.type === 'chat') tokens(each.maxOutput, `maxOutput of ${name}`);
    if (each.type === 'embedding') tokens(each.dimensions, `dimensions of ${name}`);
    if (each.maxOutput > each.context) throw new Error(`maxOutput of ${name} must not be above its context`);
    const twice = repeated((each as ModelFile).endpoints.map(({ provider }) => slugOf(provider)));
    if (twice) throw new Error(`${name} has two endpoints of the provider ${twice}`);
  });
  return data;
}

/**
 * Checks what no file can tell by itself: names are there once, and those that are referred to are there.
 * @throws Error that names the model
 */
export function assertConsistent(
  models: readonly ModelFile[],
  parameterLists: Readonly<Record<string, unknown>>,
): void {
  const twice = repeated(models.flatMap(({ id, aliases = [] }) => [id, ...aliases]));
  if (twice) throw new Error(`model "${twice}" is there twice`);
  const ids = new Set(models.map(({ id }) => id));
  for (const { id, variants = {}, endpoints } of models) {
    const lost = Object.values(variants).find((variant) => !ids.has(variant));
    if (lost) throw new Error(`variants of model "${id}" name "${lost}", which is not there`);
    for (const { parameters } of endpoints)
      if (typeof parameters === 'string' && !parameterLists[parameters])
        throw new Error(`parameters of model "${id}" name the list "${parameters}", which is not there`);
  }
}

/** How providers are named in requests: `deepinfra`, `google-vertex`. */
export function slugOf(provider: string): string {
  return provider.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

function repeated(names: readonly string[]): string | undefined {
  return names.find((name, i) => names.indexOf(name) !== i);
}

/** @throws Error that names the list */
export function parameterListsIn(data: unknown): Readonly<Record<string, readonly string[]>> {
  must('an object of lists', (it) => typeof it === 'object' && it !== null && !Array.isArray(it))(data, 'it');
  for (const [name, list] of Object.entries(data as object)) texts(list, `the list "${name}"`);
  return data as Readonly<Record<string, readonly string[]>>;
}

/** A service beside the models that has a fixed price. */
export interface FeeFile {
  readonly name: string;
  readonly provider: string;
  /** What the provider invoices for a use, and what a use is sold for. */
  readonly costUsd: string;
  readonly priceUsd: string;
}

const fee = object({ name: text, provider: text, costUsd: amount, priceUsd: amount });

/** @throws Error that names the fee and the field */
export function feesIn(data: unknown): readonly FeeFile[] {
  if (!Array.isArray(data)) throw new Error('it must be a list of fees');
  for (const [i, each] of data.entries()) fee(each, isText(each?.name) ? `fee "${each.name}"` : `fee ${i + 1}`);
  const twice = repeated(data.map(({ name }) => name));
  if (twice) throw new Error(`fee "${twice}" is there twice`);
  return data;
}
