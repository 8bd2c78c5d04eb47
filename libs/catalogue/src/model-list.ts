/** Reads the lists of models that providers publish, and compares them with a catalogue. */
import { money, type PicoUsd } from '#kernel';
import type { Catalogue } from './catalogue.ts';
import type { Endpoint } from './catalogue-entries.ts';
import { hasRetired } from './retirement.ts';
import { calculateListPrice, LIST_PRICE_TOKENS } from './tariffs.ts';
import { isDay } from './validation-rules.ts';

/** Bounds a list: OpenRouter's, the longest, has about 400 rows. */
const MAX_ROWS = 10_000;
const MAX_ID_LENGTH = 200;

const COMPARED_UNITS = ['input', 'output', 'cacheRead'] as const;
type ComparedUnit = (typeof COMPARED_UNITS)[number];

/** A model as its provider lists it. */
interface ListedModel {
  readonly id: string;
  /** The announced day of its end; undefined if there is none or the provider does not list it. */
  readonly retires?: string | undefined;
  /** Costs of 1,000,000 tokens; none if the provider does not list them. */
  readonly costs?: Readonly<Partial<Record<ComparedUnit, PicoUsd>>>;
}

type Row = Readonly<Record<string, unknown>>;

/** How a provider lists its models. */
interface ListFormat {
  /** The field of the response with the rows. */
  readonly rows: 'data' | 'models';
  /** @returns undefined for a model that cannot be called any more */
  parse(row: Row): ListedModel | undefined;
}

const LIST_FORMATS: Readonly<Record<string, ListFormat>> = {
  // `created`, `owned_by` and `shutdown_date`: https://developers.openai.com/api/docs/deprecations
  openai: { rows: 'data', parse: (row) => ({ id: parseId(row.id), retires: parseDay(row.shutdown_date) }) },
  // `lifecycle` and `retires_at`: https://docs.claude.com/en/api/models-list
  anthropic: {
    rows: 'data',
    parse: (row) =>
      row.lifecycle === 'retired' ? undefined : { id: parseId(row.id), retires: parseDay(row.retires_at) },
  },
  // `active`: https://console.groq.com/docs/models
  groq: { rows: 'data', parse: (row) => (row.active === false ? undefined : { id: parseId(row.id) }) },
  // USD per million tokens in `metadata.pricing`: https://api.deepinfra.com/v1/openai/models
  deepinfra: {
    rows: 'data',
    parse: (row) => {
      const { input_tokens, output_tokens, cache_read_tokens } = toRow(toRow(row.metadata).pricing);
      return {
        id: parseId(row.id),
        costs: parseCosts({ input: input_tokens, output: output_tokens, cacheRead: cache_read_tokens }, 1),
      };
    },
  },
  // `models/<id>` in `name`: https://ai.google.dev/api/models
  google: { rows: 'models', parse: (row) => ({ id: parseId(String(row.name).replace(/^models\//, '')) }) },
  // USD per token in `pricing`, and `expiration_date`: https://openrouter.ai/docs/api-reference/list-available-models
  openrouter: {
    rows: 'data',
    parse: (row) => {
      const { prompt, completion, input_cache_read } = toRow(row.pricing);
      return {
        id: parseId(row.id),
        retires: parseDay(row.expiration_date),
        costs: parseCosts({ input: prompt, output: completion, cacheRead: input_cache_read }, LIST_PRICE_TOKENS),
      };
    },
  },
};

/** Slugs of the providers whose lists can be read. */
export const LISTING_PROVIDERS: readonly string[] = Object.keys(LIST_FORMATS);

/**
 * Parses the response of a provider's list of models.
 * @throws Error if it is not such a list
 */
export function parseModelList(provider: string, response: unknown): readonly ListedModel[] {
  const format = LIST_FORMATS[provider];
  if (!format) throw new Error(`the list of ${provider} cannot be read; use ${LISTING_PROVIDERS.join(', ')}`);
  const rows = toRow(response)[format.rows];
  if (!Array.isArray(rows) || rows.length === 0 || rows.length > MAX_ROWS)
    throw new Error(`it must be the list of models of ${provider}, with 1 to ${MAX_ROWS} rows in "${format.rows}"`);
  return rows.flatMap((row) => format.parse(toRow(row)) ?? []);
}

/**
 * Compares the list of a provider with the endpoints of a catalogue that call it.
 * @param day the UTC day; endpoints that have ended by then are left out
 * @returns one sentence for each difference: models that are new, gone, retiring or repriced, in this order
 */
export function compareModelList(
  source: Catalogue,
  provider: string,
  published: readonly ListedModel[],
  day: string,
): readonly string[] {
  const offers = source
    .onDay(day)
    .models.flatMap((model) =>
      model.endpoints
        .filter(({ upstream }) => upstream === provider)
        .map((endpoint: Endpoint) => ({ model, endpoint, name: `"${endpoint.model}" of model "${model.id}"` })),
    );
  const publishedById = new Map(published.map((row) => [row.id, row]));
  const knownIds = new Set(
    source.models.flatMap(({ endpoints }) =>
      endpoints.flatMap(({ upstream, model }) => (upstream === provider ? [model] : [])),
    ),
  );
  const matches = offers.flatMap(({ endpoint, model, name }) => {
    const row = publishedById.get(endpoint.model);
    return row ? [{ row, name, endpoint, retires: endpoint.retires ?? model.retires }] : [];
  });
  return [
    ...published
      .filter(({ id, retires }) => !knownIds.has(id) && !hasRetired(retires, day))
      .map(({ id }) => `new: "${id}"`),
    ...offers.filter(({ endpoint }) => !publishedById.has(endpoint.model)).map(({ name }) => `gone: ${name}`),
    ...matches
      .filter(({ row, retires }) => row.retires !== undefined && row.retires !== retires)
      .map(({ row, name, retires }) => `retiring: ${name} on ${row.retires}; the catalogue has ${retires ?? 'no day'}`),
    ...matches.flatMap(({ row, name, endpoint }) =>
      COMPARED_UNITS.flatMap((unit) => describeRepricing(unit, row, name, endpoint) ?? []),
    ),
  ];
}

function describeRepricing(
  unit: ComparedUnit,
  { costs = {} }: ListedModel,
  name: string,
  { tariff }: Endpoint,
): string | undefined {
  const published = costs[unit];
  if (published === undefined || !tariff.prices.some((price) => price.unit === 'input')) return undefined;
  const { cost } = calculateListPrice({ [unit]: LIST_PRICE_TOKENS }, tariff);
  const formatCost = (amount: PicoUsd) => `${money.formatUsd(amount)} USD`;
  return cost === published
    ? undefined
    : `repriced: ${name}: 1,000,000 ${unit} cost ${formatCost(published)}; the catalogue has ${formatCost(cost)}`;
}

function toRow(value: unknown): Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Row) : {};
}

/** @throws Error if the id cannot be one: it is printed, so it must have no control characters */
function parseId(value: unknown): string {
  if (typeof value === 'string' && value.length <= MAX_ID_LENGTH && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new Error(`each row must have an id of 1 to ${MAX_ID_LENGTH} printable ASCII characters`);
}

/** Parses a day, or the day of an RFC 3339 instant. */
function parseDay(value: unknown): string | undefined {
  const day = typeof value === 'string' ? value.slice(0, 10) : undefined;
  return isDay(day) ? day : undefined;
}

/** Returns the costs of 1,000,000 tokens. A negative cost is how OpenRouter lists one that varies. */
function parseCosts(
  amounts: Readonly<Record<ComparedUnit, unknown>>,
  tokens: number,
): Readonly<Partial<Record<ComparedUnit, PicoUsd>>> {
  const costs = COMPARED_UNITS.flatMap((unit) => {
    const usd = Number(amounts[unit] ?? Number.NaN) * tokens;
    // Rounded to 6 decimals, because floating-point numbers do not represent prices exactly.
    return usd >= 0 && usd < 1e6 ? [[unit, money.parseUsd(usd.toFixed(6))] as const] : [];
  });
  return Object.fromEntries(costs);
}
