/** Parses requests for images and videos, in the same way for both. */
import type { Catalogue, Endpoint, MediaChoice, MediaChoices, MediaModel } from '#catalogue';
import { InvalidRequestError } from '../errors.ts';
import type { MediaParameters } from '../providers/media-calls.ts';
import type { EndpointHealth } from '../routing/endpoint-health.ts';
import { parseRoutingPreferences, type ResolvedModel, resolveModel } from '../routing/preferences.ts';
import { listSetFields, selectRoute } from '../routing/route.ts';
import { toNearestAspectRatio } from './aspect-ratio.ts';

type Body = Readonly<Record<string, unknown>>;

/** Request fields that set a choice, in order of precedence. The default is the field with the name of the choice. */
export type ChoiceFields = Readonly<Partial<Record<MediaChoice, readonly string[]>>>;

/** Values that mean the model's default, as if the field were omitted. */
const UNSET_VALUES: ReadonlySet<unknown> = new Set([undefined, null, '', 'auto']);
const SECONDS = /^\s*0*(\d{1,4})(?:\.0+)?\s*(?:s|sec|seconds?)?\s*$/i;

/** @throws InvalidRequestError if there is no such model, or it has another type */
export function resolveMediaModel(
  name: string,
  type: 'image' | 'video',
  catalogue: Catalogue,
): ResolvedModel<MediaModel> {
  const resolved = resolveModel(name, catalogue);
  const { id, type: actualType } = resolved.model;
  if (actualType !== type)
    throw new InvalidRequestError(
      400,
      `The model "${id}" does not generate ${type}s; its type is ${actualType}`,
      'model',
    );
  return resolved as ResolvedModel<MediaModel>;
}

/** @throws InvalidRequestError 400 if the prompt is missing or too long */
export function parsePrompt({ prompt }: Body, { id, maxPrompt }: MediaModel, defaultMaxLength: number): string {
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new InvalidRequestError(400, `prompt is required for ${id}`, 'prompt');
  const maxLength = maxPrompt ?? defaultMaxLength;
  if (prompt.length <= maxLength) return prompt;
  const message = `prompt may have at most ${maxLength.toLocaleString('en-US')} characters for ${id}`;
  throw new InvalidRequestError(400, message, 'prompt');
}

/** Returns a value for each choice of the model. @throws InvalidRequestError 400 that lists the allowed values */
export function parseChoices(body: Body, { id, choices = {} }: MediaModel, fields: ChoiceFields): MediaChoices {
  const chosen: Partial<Record<MediaChoice, string>> = {};
  for (const [choice, allowedValues = []] of Object.entries(choices)) {
    const names = fields[choice as MediaChoice] ?? [choice];
    const field = names.find((name) => !UNSET_VALUES.has(body[name]));
    const value = field === undefined ? allowedValues[0] : matchChoice(choice, String(body[field]), allowedValues);
    if (value === undefined) {
      const allowed = sortValues(choice, allowedValues).join(', ');
      throw new InvalidRequestError(400, `${field ?? choice} must be one of ${allowed} for ${id}`, field ?? choice);
    }
    chosen[choice as MediaChoice] = value;
  }
  return chosen;
}

function sortValues(choice: string, allowedValues: readonly string[]): readonly string[] {
  return choice === 'duration' ? allowedValues.toSorted((a, b) => Number(a) - Number(b)) : allowedValues;
}

function matchChoice(choice: string, requested: string, allowedValues: readonly string[]): string | undefined {
  if (choice === 'size') return toNearestAspectRatio(requested, allowedValues);
  const normalized = (choice === 'duration' ? SECONDS.exec(requested)?.[1] : requested)?.toLowerCase();
  return allowedValues.find((value) => value.toLowerCase() === normalized);
}

/** Returns the choices together with the other parameters of the result. */
export function parseMediaParameters(body: Body, names: readonly string[], choices: MediaChoices): MediaParameters {
  const entries = names.flatMap((name) => (UNSET_VALUES.has(body[name]) ? [] : [[name, body[name]] as const]));
  return { ...(Object.fromEntries(entries) as MediaParameters), ...choices };
}

/** Returns the parameters that an endpoint supports. */
export function pickEndpointParameters(
  { parameters }: Pick<Endpoint, 'parameters'>,
  requested: MediaParameters,
): MediaParameters {
  return Object.fromEntries(Object.entries(requested).filter(([name]) => parameters.includes(name)));
}

/**
 * Returns the endpoints in the order in which they are called.
 * @param capable the endpoints that can serve the request; if there are none, all endpoints of the model are considered
 * @throws InvalidRequestError 400 if a preference is invalid; 404 if no endpoint remains
 */
export function selectMediaRoute(
  { model, sort }: ResolvedModel<MediaModel>,
  capable: readonly Endpoint[],
  request: {
    readonly body: Body;
    readonly ignoredFields: ReadonlySet<string>;
    readonly source: string;
    /** See `RouteRequest`. */
    readonly chance: number;
  },
  health: EndpointHealth,
): readonly Endpoint[] {
  const { body, ignoredFields, source, chance } = request;
  return selectRoute({
    model: { ...model, endpoints: capable.length > 0 ? capable : model.endpoints },
    preferences: parseRoutingPreferences(body.provider, sort),
    fields: listSetFields(body, ignoredFields),
    usesTools: false,
    searchesWeb: false,
    source,
    chance,
    getPerformance: (endpoint) => health.get(model, endpoint),
  }).endpoints;
}
