/** What a request for a video wants of a model, who may make it, and what that costs. */
import type { Catalogue, Choice, Choices, Endpoint, MediaModel } from '#catalogue';
import { priceToJson, soldFor, type Usage, type VideoEndpoint } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { Catalogues } from '../../catalogues.ts';
import { UnservableRequest } from '../../failures.ts';
import type { MediaParameters } from '../../inference/vocabulary/media-calls.ts';
import type { Sale } from '../../paying/purchase.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import { modelNamed, type NamedModel, routingPreferences } from '../../routing/preferences.ts';
import { fieldsGiven, routeFor } from '../../routing/route.ts';
import { ratioFor } from '../images/sizes.ts';
import type { KeptRequest } from './kept-requests.ts';

/** A request in the shape of the interface with the aliases that clients have for it, as far as the gateway reads it. */
export interface VideoBody {
  readonly model: string;
  readonly prompt?: string | null;
  readonly aspect_ratio?: string | null;
  readonly size?: string | null;
  readonly duration?: string | number | null;
  readonly quality?: string | null;
  readonly resolution?: string | null;
  readonly image_url?: string | null;
  readonly provider?: unknown;
  readonly [field: string]: unknown;
}

export interface VideoQuote {
  readonly sale: Sale;
  /** As a fact keeps them. */
  readonly endpoints: readonly VideoEndpoint[];
  readonly choices: Choices;
  readonly prompt: string;
  readonly orders: KeptRequest['orders'];
  /** Where its model makes a video of a picture. */
  readonly imageUrl: string | undefined;
  readonly deadlineMs: number;
}

const LONGEST_PROMPT = 20_000;
const DEADLINE_MINUTES = 30;
/** What says nothing: the model's own default. */
const UNSAID: ReadonlySet<unknown> = new Set([undefined, null, '', 'auto']);
/** Other names of what is chosen, in the order in which they count. */
const FIELDS: Readonly<Partial<Record<Choice, readonly string[]>>> = {
  size: ['aspect_ratio', 'size'],
  quality: ['quality', 'resolution'],
  resolution: ['resolution', 'quality'],
};
const SECONDS = /^\s*0*(\d{1,4})(?:\.0+)?\s*(?:s|sec|seconds?)?\s*$/i;
/** Beside choices. A model is told those of them that it knows. */
const PASSED = ['negative_prompt', 'seed'] as const;
/** Fields of the request itself, which no model needs to support. */
const NO_PARAMETERS: ReadonlySet<string> = new Set([
  ...['model', 'prompt', 'provider', 'aspect_ratio', 'resolution', 'image_url', 'n'],
]);

export class VideoQuotes {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly health: EndpointHealth,
  ) {}

  /** @throws UnservableRequest 400 that names the field and what it may be, 404 */
  quote(body: VideoBody, requestId: string, source: string): VideoQuote {
    const { current: catalogue } = this.catalogues;
    const { priceList } = catalogue;
    const named = videoModel(body, catalogue);
    const { model } = named;
    const choices = choicesIn(body, model);
    const prompt = promptIn(body, model);
    const imageUrl = imageIn(body, model);
    const routed = this.endpointsFor(body, named, choices, source);
    const endpoints = routed.map((endpoint) => asQuoted(endpoint, choices));
    const price = money.most(...routed.map((endpoint) => priceAt(endpoint, choices)));
    const query = { model: model.id, type: 'video_generation', source, online: false, free: price === 0n } as const;
    const sale: Sale = { id: requestId, query, model, endpoints: routed, priceList, atLeast: price, atMost: price };
    const told = parametersIn(body, choices);
    const orders = routed.map(({ parameters, wire = {} }) => ({
      parameters: Object.fromEntries(Object.entries(told).filter(([name]) => parameters.includes(name))),
      wire,
    }));
    const deadlineMs = (model.deadlineMinutes ?? DEADLINE_MINUTES) * 60_000;
    return { sale, endpoints, choices, prompt, orders, imageUrl, deadlineMs };
  }

  private endpointsFor(
    body: VideoBody,
    { model, sort }: NamedModel<MediaModel>,
    choices: Choices,
    source: string,
  ): readonly Endpoint[] {
    const able = model.endpoints.filter((endpoint) => canDo(endpoint, choices, model));
    return routeFor({
      model: { ...model, endpoints: able.length > 0 ? able : model.endpoints },
      preferences: routingPreferences(body.provider, sort),
      fields: fieldsGiven(body, NO_PARAMETERS),
      usesTools: false,
      searchesWeb: false,
      source,
      chance: Math.random(),
      health: (endpoint) => this.health.of(model, endpoint),
    }).endpoints;
  }
}

/** Who is not told of a choice makes what it gets that chooses nothing. */
function canDo({ parameters }: Endpoint, choices: Choices, model: MediaModel): boolean {
  return Object.entries(choices).every(
    ([choice, word]) => parameters.includes(choice) || word === model.choices?.[choice as Choice]?.[0],
  );
}

/** A clip is a whole video, whatever its length. */
function usageAt({ tariff }: Endpoint, { duration = '0' }: Choices): Usage {
  return tariff.prices.some(({ unit }) => unit === 'clip') ? { clip: 1 } : { videoSecond: Number(duration) };
}

function priceAt(endpoint: Endpoint, choices: Choices): PicoUsd {
  return soldFor(usageAt(endpoint, choices), endpoint.tariff.prices, choices);
}

function asQuoted(endpoint: Endpoint, choices: Choices): VideoEndpoint {
  const { of, provider, creditor, prices } = endpoint.tariff;
  const usage = usageAt(endpoint, choices);
  return { of, provider, creditor, model: endpoint.model, usage, prices: prices.map(priceToJson) };
}

function parametersIn(body: VideoBody, choices: Choices): MediaParameters {
  const passed = PASSED.flatMap((name) => (UNSAID.has(body[name]) ? [] : [[name, body[name]] as const]));
  return { ...(Object.fromEntries(passed) as MediaParameters), ...choices };
}

/** @throws UnservableRequest when there is no such model, or it makes no videos */
function videoModel({ model: name }: VideoBody, catalogue: Catalogue): NamedModel<MediaModel> {
  const named = modelNamed(name, catalogue);
  const { id, type } = named.model;
  if (type !== 'video')
    throw new UnservableRequest(400, `The model "${id}" makes no videos; it is of type ${type}`, 'model');
  return named as NamedModel<MediaModel>;
}

function promptIn({ prompt }: VideoBody, { id, maxPrompt = LONGEST_PROMPT }: MediaModel): string {
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new UnservableRequest(400, `prompt is required for ${id}`, 'prompt');
  if (prompt.length <= maxPrompt) return prompt;
  const most = maxPrompt.toLocaleString('en-US');
  throw new UnservableRequest(400, `prompt may have at most ${most} characters for ${id}`, 'prompt');
}

function imageIn({ image_url: url }: VideoBody, { id, capabilities }: MediaModel): string | undefined {
  if (!capabilities.includes('image_to_video')) return undefined;
  if (typeof url === 'string' && url !== '') return url;
  if (!capabilities.includes('requires_image')) return undefined;
  throw new UnservableRequest(400, `image_url is required for ${id}`, 'image_url');
}

function choicesIn(body: VideoBody, { id, choices = {} }: MediaModel): Choices {
  const chosen: Partial<Record<Choice, string>> = {};
  for (const [choice, words = []] of Object.entries(choices)) {
    const names = FIELDS[choice as Choice] ?? [choice];
    const field = names.find((name) => !UNSAID.has(body[name]));
    const word = field === undefined ? words[0] : wordFor(choice, String(body[field]), words);
    if (word === undefined) {
      const allowed = sorted(choice, words).join(', ');
      throw new UnservableRequest(400, `${field} must be one of ${allowed} for ${id}`, field ?? choice);
    }
    chosen[choice as Choice] = word;
  }
  return chosen;
}

function sorted(choice: string, words: readonly string[]): readonly string[] {
  return choice === 'duration' ? words.toSorted((a, b) => Number(a) - Number(b)) : words;
}

function wordFor(choice: string, said: string, words: readonly string[]): string | undefined {
  if (choice === 'size') return ratioFor(said, words);
  const wanted = (choice === 'duration' ? SECONDS.exec(said)?.[1] : said)?.toLowerCase();
  return words.find((word) => word.toLowerCase() === wanted);
}
