/** Models as Anthropic's API lists them: https://docs.claude.com/en/api/models-list */
import { BadRequestError } from '../edge/errors/errors.ts';
import type { ModelJson } from './models-wire.ts';

/** Anthropic's default and maximum number of models in a page. */
export const PAGE_SIZE = 20;
export const MAX_PAGE_SIZE = 1_000;

/** Anthropic's stages of a model: usable, with an announced end, or ended. */
export const LIFECYCLES = ['active', 'deprecated', 'retired'] as const;

type Lifecycle = (typeof LIFECYCLES)[number];

/** The parameters of the list, not validated yet. */
interface ListQuery {
  readonly limit?: unknown;
  readonly after_id?: unknown;
  readonly before_id?: unknown;
  readonly 'lifecycle[]'?: unknown;
}

/** Capabilities, the model line and the day of the announcement are not published; Anthropic's types allow null. */
export function toAnthropicModel({ id, name, created, top_provider, expiration_date }: ModelJson, isRetired = false) {
  const lifecycle: Lifecycle = isRetired ? 'retired' : expiration_date === null ? 'active' : 'deprecated';
  return {
    type: 'model',
    id,
    display_name: name,
    created_at: new Date(created * 1_000).toISOString(),
    max_input_tokens: top_provider.context_length,
    max_tokens: top_provider.max_completion_tokens,
    lifecycle,
    deprecated_at: null,
    retires_at: expiration_date === null ? null : new Date(expiration_date).toISOString(),
    capabilities: null,
    line: null,
  };
}

/**
 * Returns a page of the list, which has the newest models first. `has_more` is whether more models follow it, or with
 * `before_id` precede it.
 * @param includesRetired whether models that have retired are listed if the query names no stages
 * @throws BadRequestError for an invalid limit or stage, or an id that is not in the list
 */
export function createAnthropicModelPage(
  [current, retired]: readonly [current: readonly ModelJson[], retired: readonly ModelJson[]],
  query: ListQuery,
  includesRetired: boolean,
) {
  const stages = parseLifecycles(query['lifecycle[]']) ?? LIFECYCLES.slice(0, includesRetired ? 3 : 2);
  const models = [...current.map((row) => toAnthropicModel(row)), ...retired.map((row) => toAnthropicModel(row, true))]
    .filter(({ lifecycle }) => stages.includes(lifecycle))
    .sort((a, b) => b.created_at.localeCompare(a.created_at));
  const { after_id, before_id } = query;
  if (isSet(after_id) && isSet(before_id))
    throw new BadRequestError('after_id and before_id cannot be combined', 'before_id');
  const limit = parseLimit(query.limit);
  const end = isSet(before_id) ? findPosition(models, before_id, 'before_id') : undefined;
  const start = isSet(after_id) ? findPosition(models, after_id, 'after_id') + 1 : Math.max((end ?? 0) - limit, 0);
  const data = models.slice(start, Math.min(start + limit, end ?? models.length));
  return {
    data,
    has_more: end === undefined ? start + limit < models.length : start > 0,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}

function parseLifecycles(value: unknown): readonly Lifecycle[] | undefined {
  if (!isSet(value)) return undefined;
  return [value].flat().map((name) => {
    const stage = LIFECYCLES.find((lifecycle) => lifecycle === name);
    if (stage === undefined)
      throw new BadRequestError(`lifecycle must be one of ${LIFECYCLES.join(', ')}`, 'lifecycle');
    return stage;
  });
}

function parseLimit(value: unknown): number {
  if (!isSet(value)) return PAGE_SIZE;
  const limit = Number(value);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE_SIZE)
    throw new BadRequestError(`limit must be an integer from 1 to ${MAX_PAGE_SIZE}`, 'limit');
  return limit;
}

function findPosition(models: readonly { readonly id: string }[], id: unknown, param: string): number {
  const position = models.findIndex((model) => model.id === id);
  if (position < 0) throw new BadRequestError(`${param} must be the id of a model in the list`, param);
  return position;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== '';
}
