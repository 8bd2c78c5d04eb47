/** What a request for a video wants of a model, who may make it, and what that costs. */
import type { Endpoint, MediaChoices, MediaModel } from '#catalogue';
import { calculatePrice, toPriceJson, type Usage, type VideoEndpoint } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { Payer } from '../../billing/payer.ts';
import type { Order } from '../../billing/purchase.ts';
import type { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import {
  type ChoiceFields,
  parseChoices,
  parseMediaParameters,
  parsePrompt,
  pickEndpointParameters,
  resolveMediaModel,
  selectMediaRoute,
} from '../parse-media-request.ts';
import type { StoredVideoRequest } from './video-request-store.ts';

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
  readonly sale: Order;
  /** As a fact keeps them. */
  readonly endpoints: readonly VideoEndpoint[];
  readonly choices: MediaChoices;
  readonly prompt: string;
  readonly orders: StoredVideoRequest['orders'];
  /** Where its model makes a video of a picture. */
  readonly imageUrl: string | undefined;
  readonly deadlineMs: number;
}

const LONGEST_PROMPT = 20_000;
const DEADLINE_MINUTES = 30;
const FIELDS: ChoiceFields = {
  size: ['aspect_ratio', 'size'],
  quality: ['quality', 'resolution'],
  resolution: ['resolution', 'quality'],
};
/** Beside choices. A model is told those of them that it knows. */
const PASSED = ['negative_prompt', 'seed'] as const;
/** Fields of the request itself, which no model needs to support. */
const NO_PARAMETERS: ReadonlySet<string> = new Set([
  ...['model', 'prompt', 'provider', 'aspect_ratio', 'resolution', 'image_url', 'n'],
]);

export class VideoQuoter {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly health: EndpointHealth,
  ) {}

  /** @throws InvalidRequestError 400 that names the field and what it may be, 404 */
  async quote(
    body: VideoBody,
    { requestId, source, payer }: { requestId: string; source: string; payer: Pick<Payer, 'priceList'> },
  ): Promise<VideoQuote> {
    const catalogue = await this.catalogues.servedTo(payer);
    const { priceList } = catalogue;
    const named = resolveMediaModel(body.model, 'video', catalogue);
    const { model } = named;
    const choices = parseChoices(body, model, FIELDS);
    const prompt = parsePrompt(body, model, LONGEST_PROMPT);
    const imageUrl = imageIn(body, model);
    const able = model.endpoints.filter((endpoint) => canDo(endpoint, choices, model));
    const routed = selectMediaRoute(named, able, { body, besides: NO_PARAMETERS, source }, this.health);
    const endpoints = routed.map((endpoint) => asQuoted(endpoint, choices));
    const price = money.max(...routed.map((endpoint) => priceAt(endpoint, choices)));
    const query = { model: model.id, type: 'video_generation', source, online: false, free: price === 0n } as const;
    const sale: Order = { id: requestId, query, model, endpoints: routed, priceList, atLeast: price, atMost: price };
    const said = parseMediaParameters(body, PASSED, choices);
    const orders = routed.map((endpoint) => ({
      parameters: pickEndpointParameters(endpoint, said),
      wire: endpoint.wire ?? {},
    }));
    const deadlineMs = (model.deadlineMinutes ?? DEADLINE_MINUTES) * 60_000;
    return { sale, endpoints, choices, prompt, orders, imageUrl, deadlineMs };
  }
}

/** Who is not told of a choice makes what it gets that chooses nothing. */
function canDo({ parameters }: Endpoint, choices: MediaChoices, model: MediaModel): boolean {
  return Object.entries(choices).every(
    ([choice, word]) => parameters.includes(choice) || word === model.choices?.[choice as keyof MediaChoices]?.[0],
  );
}

/** A clip is a whole video, whatever its length. */
function usageAt({ tariff }: Endpoint, { duration = '0' }: MediaChoices): Usage {
  return tariff.prices.some(({ unit }) => unit === 'clip') ? { clip: 1 } : { videoSecond: Number(duration) };
}

function priceAt(endpoint: Endpoint, choices: MediaChoices): PicoUsd {
  return calculatePrice(usageAt(endpoint, choices), endpoint.tariff.prices, choices);
}

function asQuoted(endpoint: Endpoint, choices: MediaChoices): VideoEndpoint {
  const { of, provider, creditor, prices } = endpoint.tariff;
  const usage = usageAt(endpoint, choices);
  return { of, provider, creditor, model: endpoint.model, usage, prices: prices.map(toPriceJson) };
}

function imageIn({ image_url: url }: VideoBody, { id, capabilities }: MediaModel): string | undefined {
  if (!capabilities.includes('image_to_video')) return undefined;
  if (typeof url === 'string' && url !== '') return url;
  if (!capabilities.includes('requires_image')) return undefined;
  throw new InvalidRequestError(400, `image_url is required for ${id}`, 'image_url');
}
