/**
 * Converts OpenRouter's list of models to catalogue entries. The list is a saved response of
 * `GET https://openrouter.ai/api/v1/models`.
 */
import { money } from '#kernel';
import type { ModelFile, TierFile, UsdPerMillionTokens } from './model-file.ts';
import { PRIVATE_PREFIX } from './private-models.ts';

/** Prices by OpenRouter's names. `overrides` has prices that apply under conditions. */
type Pricing = Readonly<Record<string, unknown>>;

/** The fields of a row that are read. Prices are strings: USD per token, and `request` USD per request. */
interface OpenRouterModel {
  readonly id: string;
  readonly name?: string;
  readonly description?: string;
  readonly created?: number;
  readonly context_length?: number | null;
  readonly architecture?: {
    readonly input_modalities?: readonly string[];
    readonly output_modalities?: readonly string[];
  };
  readonly pricing?: Pricing;
  readonly top_provider?: { readonly max_completion_tokens?: number | null; readonly context_length?: number | null };
  readonly supported_parameters?: readonly string[];
}

/** OpenRouter's name for each optional price of the catalogue. */
const PRICE_FIELDS = {
  cacheRead: 'input_cache_read',
  cacheWrite: 'input_cache_write',
  reasoning: 'internal_reasoning',
} as const;

const TOKEN_PRICE_FIELDS: ReadonlySet<string> = new Set(['prompt', 'completion', ...Object.values(PRICE_FIELDS)]);
/** Conditions of an override: a minimum number of input tokens, or a time of day or week. */
const MIN_TOKENS_FIELD = 'min_prompt_tokens';
const TIME_FIELDS = ['utc_start', 'utc_end', 'utc_days'];

const DEFAULT_CONTEXT = 8_192;
/** Default for the maximum output: the context length divided by this number. */
const DEFAULT_OUTPUT_DIVISOR = 4;

export interface OpenRouterImport {
  readonly models: readonly ModelFile[];
  /** Ids of rows that cannot be sold, each with the reason. */
  readonly skipped: readonly string[];
}

/**
 * Converts the models with a non-private id, text output, and a fixed price that is not higher at certain times.
 * @param margin price divided by cost, as a decimal string
 * @throws Error if `list` is not a list of models
 */
export function importOpenRouterModels(list: unknown, margin: string): OpenRouterImport {
  const rows = (list as { data?: unknown } | null)?.data;
  if (!Array.isArray(rows)) throw new Error('it must be a list of models as returned by OpenRouter, with "data"');
  const models: ModelFile[] = [];
  const skipped: string[] = [];
  for (const row of rows as readonly (OpenRouterModel | null)[]) {
    const model = hasPrintableId(row) ? convertRow(row, margin) : 'it has no id of printable ASCII characters';
    if (typeof model === 'string') skipped.push(`${hasPrintableId(row) ? row.id : 'a row'}: ${model}`);
    else models.push(model);
  }
  return { models, skipped };
}

function hasPrintableId(row: OpenRouterModel | null): row is OpenRouterModel {
  return typeof row?.id === 'string' && /^[\x21-\x7e]{1,200}$/.test(row.id);
}

/** A row whose fields have other types than documented is skipped like one that cannot be sold. */
function convertRow(row: OpenRouterModel, margin: string): ModelFile | string {
  try {
    return toModelFile(row, margin);
  } catch (error) {
    return `it cannot be read (${(error as Error).message})`;
  }
}

function toModelFile(row: OpenRouterModel, margin: string): ModelFile | string {
  const { id, name = id, description = '', created = 0, pricing = {}, architecture = {}, top_provider = {} } = row;
  const { input_modalities = ['text'], output_modalities = ['text'] } = architecture;
  if (id.startsWith(PRIVATE_PREFIX)) return 'its id has the prefix of private models';
  if (!output_modalities.includes('text')) return 'it does not output text';
  const prices = parsePrices(pricing);
  if (prices === undefined) return 'it has no fixed price';
  const overrides = Array.isArray(pricing.overrides) ? (pricing.overrides as readonly Pricing[]) : [];
  if (overrides.some((override) => isMoreExpensiveAtTimes(override, pricing)))
    return 'it is more expensive at certain times';
  const tiers = parseTiers(overrides, pricing);
  const context = row.context_length || top_provider.context_length || DEFAULT_CONTEXT;
  const maxTokens = top_provider.max_completion_tokens || Math.ceil(context / DEFAULT_OUTPUT_DIVISOR);
  const request = toOptionalText(pricing.request);
  return {
    id,
    type: 'chat',
    name,
    provider: parseProviderName(id),
    description: description.split('\n')[0] || name,
    released: new Date(created * 1000).toISOString().slice(0, 10),
    popular: false,
    privacy: 'anon',
    inputs: selectInputs(pricing, input_modalities),
    outputs: output_modalities,
    context,
    maxOutput: Math.min(maxTokens, context),
    endpoints: [
      {
        provider: 'OpenRouter',
        upstream: 'openrouter',
        model: id,
        usdPerMillionTokens: prices,
        ...(tiers.length > 0 ? { tiers } : {}),
        ...(request && Number(request) > 0 ? { usdPerRequest: request } : {}),
        margin,
        routes: true,
        parameters: [...new Set([...(row.supported_parameters ?? []), 'max_tokens', 'provider'])],
      },
    ],
  };
}

/** @returns undefined if the price of input or output is missing or varies */
function parsePrices(pricing: Pricing): UsdPerMillionTokens | undefined {
  const [input, output] = [toUsdPerMillion(pricing.prompt), toUsdPerMillion(pricing.completion)];
  if (input === undefined || output === undefined) return undefined;
  const otherPrices = Object.entries(PRICE_FIELDS).flatMap(([unit, field]) => {
    const price = toUsdPerMillion(pricing[field]);
    return price === undefined || price === '0' ? [] : [[unit, price] as const];
  });
  return { input, output, ...Object.fromEntries(otherPrices) };
}

/** Builds a tier for each size condition. Later overrides replace earlier ones; other prices are the default ones. */
function parseTiers(overrides: readonly Pricing[], pricing: Pricing): readonly TierFile[] {
  const sizeOverrides = overrides.filter(
    (override) => !isTimed(override) && typeof override[MIN_TOKENS_FIELD] === 'number',
  );
  const sizes = [...new Set(sizeOverrides.map((override) => override[MIN_TOKENS_FIELD] as number))].sort(
    (a, b) => a - b,
  );
  return sizes.flatMap((above) => {
    const applying = sizeOverrides.filter((override) => (override[MIN_TOKENS_FIELD] as number) <= above);
    const usdPerMillionTokens = parsePrices(Object.assign({}, pricing, ...applying));
    return usdPerMillionTokens ? [{ above, usdPerMillionTokens }] : [];
  });
}

/** Overrides that are cheaper at certain times are ignored: the model is sold at the default price. */
function isMoreExpensiveAtTimes(override: Pricing, pricing: Pricing): boolean {
  if (!isTimed(override)) return false;
  return Object.entries(override).some(
    ([name, price]) => TOKEN_PRICE_FIELDS.has(name) && Number(price) > Number(pricing[name] ?? 0),
  );
}

function isTimed(override: Pricing): boolean {
  return TIME_FIELDS.some((condition) => condition in override);
}

/** Audio input is charged at the price of text. If audio costs more, audio and video inputs are dropped. */
function selectInputs(pricing: Pricing, inputs: readonly string[]): readonly string[] {
  const isAudioExpensive = Number(pricing.audio ?? 0) > Number(pricing.prompt);
  const accepted = isAudioExpensive ? inputs.filter((input) => input !== 'audio' && input !== 'video') : inputs;
  return accepted.length > 0 ? accepted : ['text'];
}

function toOptionalText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function parseProviderName(id: string): string {
  return id.includes('/') ? id.slice(0, id.indexOf('/')) : 'OpenRouter';
}

/** @returns undefined if there is no price or it varies, which OpenRouter lists as -1 */
function toUsdPerMillion(perToken: unknown): string | undefined {
  if (typeof perToken !== 'string' || !(Number(perToken) >= 0)) return undefined;
  const usd = money.formatScaled(money.parseScaled(perToken, 18), 12);
  return usd;
}
