/** OpenRouter's list of models (`GET https://openrouter.ai/api/v1/models`, saved to a file) as catalogue entries. */
import { money } from '#kernel';
import type { ModelFile } from './model-file.ts';
import { PRIVATE_PREFIX } from './private-models.ts';

/** The part of a row that is read; prices are USD for one token, as text. */
interface Row {
  readonly id: string;
  readonly name?: string;
  readonly description?: string;
  readonly created?: number;
  readonly context_length?: number | null;
  readonly architecture?: {
    readonly input_modalities?: readonly string[];
    readonly output_modalities?: readonly string[];
  };
  readonly pricing?: Readonly<Record<string, string | undefined>>;
  readonly top_provider?: { readonly max_completion_tokens?: number | null; readonly context_length?: number | null };
  readonly supported_parameters?: readonly string[];
}

/** OpenRouter's names of prices, by ours. */
const PRICES = {
  cacheRead: 'input_cache_read',
  cacheWrite: 'input_cache_write',
  reasoning: 'internal_reasoning',
} as const;

const DEFAULT_CONTEXT = 8_192;
/** An answer takes at most this part of a context whose row says nothing of it. */
const OUTPUT_SHARE = 4;

export interface Imported {
  readonly models: readonly ModelFile[];
  /** Rows that cannot be sold, with the reason. */
  readonly skipped: readonly string[];
}

/**
 * @param margin price as a factor of the cost, as text
 * @throws Error when it is no such list
 */
export function modelsFromOpenRouter(list: unknown, margin: string): Imported {
  const rows = (list as { data?: unknown } | null)?.data;
  if (!Array.isArray(rows)) throw new Error('it must be a list of models as OpenRouter answers it, with "data"');
  const models: ModelFile[] = [];
  const skipped: string[] = [];
  for (const row of rows as readonly Row[]) {
    const model = modelFrom(row, margin);
    if (typeof model === 'string') skipped.push(`${row?.id ?? 'a row'}: ${model}`);
    else models.push(model);
  }
  return { models, skipped };
}

function modelFrom(row: Row, margin: string): ModelFile | string {
  const { id, name = id, description = '', created = 0, pricing = {}, architecture = {}, top_provider = {} } = row;
  const { input_modalities = ['text'], output_modalities = ['text'] } = architecture;
  if (typeof id !== 'string' || id === '') return 'it has no id';
  if (id.startsWith(PRIVATE_PREFIX)) return 'its id would be that of a private model';
  if (!output_modalities.includes('text')) return 'it answers with no text';
  const input = perMillion(pricing.prompt);
  const output = perMillion(pricing.completion);
  if (input === undefined || output === undefined) return 'it has no fixed price';
  const context = row.context_length || top_provider.context_length || DEFAULT_CONTEXT;
  const most = top_provider.max_completion_tokens || Math.ceil(context / OUTPUT_SHARE);
  const request = pricing.request;
  const others = Object.entries(PRICES).flatMap(([ours, theirs]) => {
    const price = perMillion(pricing[theirs]);
    return price === undefined || price === '0' ? [] : [[ours, price] as const];
  });
  return {
    id,
    type: 'chat',
    name,
    provider: vendorOf(id),
    description: description.split('\n')[0] || name,
    released: new Date(created * 1000).toISOString().slice(0, 10),
    popular: false,
    privacy: 'anon',
    inputs: input_modalities.length > 0 ? input_modalities : ['text'],
    outputs: output_modalities,
    context,
    maxOutput: Math.min(most, context),
    endpoints: [
      {
        provider: 'OpenRouter',
        upstream: 'openrouter',
        model: id,
        usdPerMillionTokens: { input, output, ...Object.fromEntries(others) },
        ...(request && Number(request) > 0 ? { usdPerRequest: request } : {}),
        margin,
        routes: true,
        parameters: [...new Set([...(row.supported_parameters ?? []), 'max_tokens', 'provider'])],
      },
    ],
  };
}

function vendorOf(id: string): string {
  return id.includes('/') ? id.slice(0, id.indexOf('/')) : 'OpenRouter';
}

/** Undefined where there is none, or one that varies: the list has -1 there. */
function perMillion(perToken: string | undefined): string | undefined {
  if (perToken === undefined || !(Number(perToken) >= 0)) return undefined;
  const usd = money.unscaled(money.scaled(perToken, 18), 12);
  return usd;
}
