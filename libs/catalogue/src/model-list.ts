/** Reads the lists of models that providers publish, and compares them with a catalogue. */
import { money, type PicoUsd } from '#kernel';
import type { Catalogue } from './catalogue.ts';
import type { Endpoint } from './catalogue-entries.ts';
import { isDay } from './field-schemas.ts';
import { LISTING_PROVIDERS, type ListingProvider } from './listing-providers.ts';
import { hasRetired } from './retirement.ts';
import { calculateListPrice, LIST_PRICE_TOKENS } from './tariffs.ts';

/** Bounds a list: OpenRouter's, the longest, has about 400 rows. */
const MAX_ROWS = 10_000;
const MAX_ID_LENGTH = 200;

const COMPARED_UNITS = ['input', 'output', 'cacheRead'] as const;
type ComparedUnit = (typeof COMPARED_UNITS)[number];

/** A model as its provider lists it. */
interface ListedModel {
  readonly id: string;
  /** Another name of the model, which the provider accepts but does not list. */
  readonly alias?: string;
  /** The announced day of its end; undefined if there is none or the provider does not list it. */
  readonly retires?: string | undefined;
  /** Costs of 1,000,000 tokens; none if the provider does not list them. */
  readonly costs?: Readonly<Partial<Record<ComparedUnit, PicoUsd>>>;
}

/** A difference between a provider's list and a catalogue. A model that is new is not in the catalogue. */
export interface ModelDifference {
  /** A problem if the catalogue sells a model that can no longer be called. */
  readonly level: 'information' | 'warning' | 'problem';
  readonly sentence: string;
}

type Row = Readonly<Record<string, unknown>>;

/** How a provider lists its models. */
interface ListFormat {
  /** The field of the response with the rows. */
  readonly rows: 'data' | 'models';
  /** @returns undefined for a model that cannot be called any more */
  parse(row: Row): ListedModel | undefined;
}

const LIST_FORMATS: Readonly<Record<ListingProvider, ListFormat>> = {
  // `created`, `owned_by` and `shutdown_date`: https://developers.openai.com/api/docs/deprecations
  openai: { rows: 'data', parse: (row) => ({ id: parseId(row.id), retires: parseDay(row.shutdown_date) }) },
  // `lifecycle` and `retires_at`, and ids that may end with a date: https://docs.claude.com/en/api/models-list
  anthropic: {
    rows: 'data',
    parse: (row) => {
      if (row.lifecycle === 'retired') return undefined;
      const id = parseId(row.id);
      return { id, alias: id.replace(/-20\d{6}$/, ''), retires: parseDay(row.retires_at) };
    },
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

/**
 * Parses the response of a provider's list of models.
 * @throws Error if it is not such a list
 */
export function parseModelList(provider: string, response: unknown): readonly ListedModel[] {
  const format = LISTING_PROVIDERS.find((name) => name === provider);
  if (!format) throw new Error(`the list of ${provider} cannot be read; use ${LISTING_PROVIDERS.join(', ')}`);
  const { rows: field, parse } = LIST_FORMATS[format];
  const rows = toRow(response)[field];
  if (!Array.isArray(rows) || rows.length === 0 || rows.length > MAX_ROWS)
    throw new Error(`it must be the list of models of ${provider}, with 1 to ${MAX_ROWS} rows in "${field}"`);
  return rows.flatMap((row) => parse(toRow(row)) ?? []);
}

/**
 * Compares the list of a provider with the endpoints of a catalogue that call it.
 * @param day the UTC day; endpoints that have ended by then are left out
 * @returns the models that are new, gone, ended, retiring or repriced, in this order
 */
export function compareModelList(
  source: Catalogue,
  provider: string,
  published: readonly ListedModel[],
  day: string,
): readonly ModelDifference[] {
  const offers = source
    .onDay(day)
    .models.flatMap((model) =>
      model.endpoints
        .filter(({ upstream }) => upstream === provider)
        .map((endpoint: Endpoint) => ({ model, endpoint, name: `"${endpoint.model}" of model "${model.id}"` })),
    );
  const publishedByName = new Map([
    ...published.flatMap((row) => (row.alias === undefined ? [] : [[row.alias, row] as const])),
    ...published.map((row) => [row.id, row] as const),
  ]);
  const knownIds = new Set(
    source.models.flatMap(({ endpoints }) =>
      endpoints.flatMap(({ upstream, model }) => (upstream === provider ? [model] : [])),
    ),
  );
  const matches = offers.flatMap(({ endpoint, model, name }) => {
    const row = publishedByName.get(endpoint.model);
    return row ? [{ row, name, endpoint, retires: endpoint.retires ?? model.retires }] : [];
  });
  const changedEnds = matches.flatMap(({ row, name, retires }): readonly ModelDifference[] => {
    if (row.retires === undefined || row.retires === retires) return [];
    const end = `${name} on ${row.retires}; the catalogue has ${retires ?? 'no day'}`;
    return hasRetired(row.retires, day)
      ? [{ level: 'problem', sentence: `ended: ${end}` }]
      : [{ level: 'warning', sentence: `retiring: ${end}` }];
  });
  return [
    ...published
      .filter(({ id, alias = id, retires }) => !knownIds.has(id) && !knownIds.has(alias) && !hasRetired(retires, day))
      .map(({ id }) => ({ level: 'information', sentence: `new: "${id}"` }) as const),
    ...offers
      .filter(({ endpoint }) => !publishedByName.has(endpoint.model))
      .map(({ name }) => ({ level: 'problem', sentence: `gone: ${name}` }) as const),
    ...changedEnds.filter(({ level }) => level === 'problem'),
    ...changedEnds.filter(({ level }) => level === 'warning'),
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
): ModelDifference | undefined {
  const published = costs[unit];
  if (published === undefined || !tariff.prices.some((price) => price.unit === 'input')) return undefined;
  const { cost } = calculateListPrice({ [unit]: LIST_PRICE_TOKENS }, tariff);
  const formatCost = (amount: PicoUsd) => `${money.formatUsd(amount)} USD`;
  if (cost === published) return undefined;
  const sentence = `repriced: ${name}: 1,000,000 ${unit} cost ${formatCost(published)}; the catalogue has ${formatCost(cost)}`;
  return { level: 'warning', sentence };
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
