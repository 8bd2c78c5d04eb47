/** What a request wants of a model that makes pictures or films: read the same way for both. */
import type { Catalogue, Endpoint, MediaChoice, MediaChoices, MediaModel } from '#catalogue';
import { InvalidRequestError } from '../errors.ts';
import type { MediaParameters } from '../providers/media-calls.ts';
import type { EndpointHealth } from '../routing/endpoint-health.ts';
import { parseRoutingPreferences, type ResolvedModel, resolveModel } from '../routing/preferences.ts';
import { listSetFields, selectRoute } from '../routing/route.ts';
import { toNearestAspectRatio } from './aspect-ratio.ts';

type Body = Readonly<Record<string, unknown>>;

/** Fields of a request that may name a choice, in the order in which they count; its own name where nothing is said. */
export type ChoiceFields = Readonly<Partial<Record<MediaChoice, readonly string[]>>>;

/** What says nothing: the model's own default. */
const UNSAID: ReadonlySet<unknown> = new Set([undefined, null, '', 'auto']);
const SECONDS = /^\s*0*(\d{1,4})(?:\.0+)?\s*(?:s|sec|seconds?)?\s*$/i;

/** @throws InvalidRequestError when there is no such model, or it makes something else */
export function resolveMediaModel(
  name: string,
  type: 'image' | 'video',
  catalogue: Catalogue,
): ResolvedModel<MediaModel> {
  const named = resolveModel(name, catalogue);
  const { id, type: made } = named.model;
  if (made !== type)
    throw new InvalidRequestError(400, `The model "${id}" makes no ${type}s; it is of type ${made}`, 'model');
  return named as ResolvedModel<MediaModel>;
}

/** @throws InvalidRequestError 400 when there is none, or too much of it */
export function parsePrompt({ prompt }: Body, { id, maxPrompt }: MediaModel, longest: number): string {
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new InvalidRequestError(400, `prompt is required for ${id}`, 'prompt');
  const most = maxPrompt ?? longest;
  if (prompt.length <= most) return prompt;
  const message = `prompt may have at most ${most.toLocaleString('en-US')} characters for ${id}`;
  throw new InvalidRequestError(400, message, 'prompt');
}

/** A word for each thing that the model leaves to choose. @throws InvalidRequestError 400 that lists what it may be */
export function parseChoices(body: Body, { id, choices = {} }: MediaModel, fields: ChoiceFields): MediaChoices {
  const chosen: Partial<Record<MediaChoice, string>> = {};
  for (const [choice, words = []] of Object.entries(choices)) {
    const names = fields[choice as MediaChoice] ?? [choice];
    const field = names.find((name) => !UNSAID.has(body[name]));
    const word = field === undefined ? words[0] : wordFor(choice, String(body[field]), words);
    if (word === undefined) {
      const allowed = sorted(choice, words).join(', ');
      throw new InvalidRequestError(400, `${field ?? choice} must be one of ${allowed} for ${id}`, field ?? choice);
    }
    chosen[choice as MediaChoice] = word;
  }
  return chosen;
}

function sorted(choice: string, words: readonly string[]): readonly string[] {
  return choice === 'duration' ? words.toSorted((a, b) => Number(a) - Number(b)) : words;
}

function wordFor(choice: string, said: string, words: readonly string[]): string | undefined {
  if (choice === 'size') return toNearestAspectRatio(said, words);
  const wanted = (choice === 'duration' ? SECONDS.exec(said)?.[1] : said)?.toLowerCase();
  return words.find((word) => word.toLowerCase() === wanted);
}

/** What is chosen, and what else is said of the result. */
export function parseMediaParameters(body: Body, names: readonly string[], choices: MediaChoices): MediaParameters {
  const passed = names.flatMap((name) => (UNSAID.has(body[name]) ? [] : [[name, body[name]] as const]));
  return { ...(Object.fromEntries(passed) as MediaParameters), ...choices };
}

/** What an endpoint is told of it: what it knows. */
export function pickEndpointParameters(
  { parameters }: Pick<Endpoint, 'parameters'>,
  said: MediaParameters,
): MediaParameters {
  return Object.fromEntries(Object.entries(said).filter(([name]) => parameters.includes(name)));
}

/**
 * In which order endpoints are asked.
 * @param able those that can do it; where there are none, the reasons are those of all
 * @throws InvalidRequestError 404
 */
export function selectMediaRoute(
  { model, sort }: ResolvedModel<MediaModel>,
  able: readonly Endpoint[],
  asked: { readonly body: Body; readonly besides: ReadonlySet<string>; readonly source: string },
  health: EndpointHealth,
): readonly Endpoint[] {
  const { body, besides, source } = asked;
  return selectRoute({
    model: { ...model, endpoints: able.length > 0 ? able : model.endpoints },
    preferences: parseRoutingPreferences(body.provider, sort),
    fields: listSetFields(body, besides),
    usesTools: false,
    searchesWeb: false,
    source,
    chance: Math.random(),
    health: (endpoint) => health.of(model, endpoint),
  }).endpoints;
}
