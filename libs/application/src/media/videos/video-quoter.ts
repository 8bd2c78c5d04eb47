/** Quotes a request for a video: its choices, its endpoints and its price. */
import { type Endpoint, isFreeTier, type MediaChoices, type MediaModel } from '#catalogue';
import { calculatePrice, toPriceJson, type Usage, type VideoEndpoint } from '#domain';
import { money, type PicoUsd, type Randomness } from '#kernel';
import type { Order } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
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

/** A request in the format of the API, with the field aliases that clients use. */
export interface VideoBody {
  readonly model: string;
  readonly prompt?: string | null;
  readonly aspect_ratio?: string | null;
  readonly size?: string | null;
  readonly duration?: string | number | null;
  readonly seconds?: string | number | null;
  readonly quality?: string | null;
  readonly resolution?: string | null;
  readonly image_url?: string | null;
  readonly provider?: unknown;
  readonly [field: string]: unknown;
}

export interface VideoQuote {
  readonly order: Order;
  /** As the event stores them. */
  readonly endpoints: readonly VideoEndpoint[];
  readonly choices: MediaChoices;
  readonly prompt: string;
  readonly orders: StoredVideoRequest['orders'];
  /** URL of the input image, for models that generate a video from an image, unless it was uploaded. */
  readonly imageUrl: string | undefined;
  readonly deadlineMs: number;
}

const MAX_PROMPT_LENGTH = 20_000;
const DEADLINE_MINUTES = 30;
const CHOICE_FIELDS: ChoiceFields = {
  size: ['aspect_ratio', 'size'],
  duration: ['duration', 'seconds'],
  quality: ['quality', 'resolution'],
  resolution: ['resolution', 'quality'],
};
/** Fields in addition to choices. An endpoint receives those that it supports. */
const FORWARDED_FIELDS = ['negative_prompt', 'seed'] as const;
/** Fields that no endpoint needs to support. */
const NON_PARAMETER_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'prompt',
  'provider',
  'aspect_ratio',
  'resolution',
  'image_url',
  'n',
  'seconds',
]);

export class VideoQuoter {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly health: EndpointHealth,
    private readonly randomness: Pick<Randomness, 'chance'>,
  ) {}

  /** @throws InvalidRequestError 400 if a field is invalid; 404 if the model or an endpoint for it was not found */
  async quote(
    body: VideoBody,
    {
      requestId,
      source,
      payer,
      hasUpload = false,
    }: { requestId: string; source: string; payer: Pick<Payer, 'priceList'>; hasUpload?: boolean },
  ): Promise<VideoQuote> {
    const catalogue = await this.catalogues.loadForPayer(payer);
    const { priceList } = catalogue;
    const resolved = resolveMediaModel(body.model, 'video', catalogue);
    const { model } = resolved;
    const choices = parseChoices(body, model, CHOICE_FIELDS);
    const prompt = parsePrompt(body, model, MAX_PROMPT_LENGTH);
    const imageUrl = parseImageUrl(body, model, hasUpload);
    const capable = model.endpoints.filter((endpoint) => supportsChoices(endpoint, choices, model));
    const routed = selectMediaRoute(
      resolved,
      capable,
      { body, ignoredFields: NON_PARAMETER_FIELDS, source, chance: this.randomness.chance() },
      this.health,
    );
    const endpoints = routed.map((endpoint) => toQuotedEndpoint(endpoint, choices));
    const price = money.max(...routed.map((endpoint) => calculateEndpointPrice(endpoint, choices)));
    const query = {
      model: model.id,
      type: 'video_generation',
      source,
      online: false,
      free: isFreeTier(model),
    } as const;
    const order: Order = {
      id: requestId,
      query,
      model,
      endpoints: routed,
      priceList,
      minPrice: price,
      maxPrice: price,
    };
    const parameters = parseMediaParameters(body, FORWARDED_FIELDS, choices);
    const orders = routed.map((endpoint) => ({
      parameters: pickEndpointParameters(endpoint, parameters),
      wire: endpoint.wire ?? {},
    }));
    const deadlineMs = (model.deadlineMinutes ?? DEADLINE_MINUTES) * 60_000;
    return { order, endpoints, choices, prompt, orders, imageUrl, deadlineMs };
  }
}

/**
 * Whether an endpoint can serve the choices. An endpoint that does not support a choice generates the model's default.
 */
function supportsChoices({ parameters }: Endpoint, choices: MediaChoices, model: MediaModel): boolean {
  return Object.entries(choices).every(
    ([choice, word]) => parameters.includes(choice) || word === model.choices?.[choice as keyof MediaChoices]?.[0],
  );
}

/** A clip is one complete video, whatever its length. */
function toUsage({ tariff }: Endpoint, { duration = '0' }: MediaChoices): Usage {
  return tariff.prices.some(({ unit }) => unit === 'clip') ? { clip: 1 } : { videoSecond: Number(duration) };
}

function calculateEndpointPrice(endpoint: Endpoint, choices: MediaChoices): PicoUsd {
  return calculatePrice(toUsage(endpoint, choices), endpoint.tariff.prices, choices);
}

function toQuotedEndpoint(endpoint: Endpoint, choices: MediaChoices): VideoEndpoint {
  const { of, provider, creditor, prices } = endpoint.tariff;
  const usage = toUsage(endpoint, choices);
  return { of, provider, creditor, model: endpoint.model, usage, prices: prices.map(toPriceJson) };
}

/**
 * Returns the URL of the input image; undefined if the model generates the video from the prompt alone. An image that
 * the model cannot use is rejected, because the caller would pay for a video of something else.
 */
function parseImageUrl(
  { image_url }: VideoBody,
  { id, capabilities }: MediaModel,
  hasUpload: boolean,
): string | undefined {
  const url = image_url || undefined;
  const hasImage = hasUpload || url !== undefined;
  if (hasImage && capabilities.includes('image_to_video')) return url;
  if (hasImage) throw new InvalidRequestError(400, `The model "${id}" does not use an image_url`, 'image_url');
  if (!capabilities.includes('requires_image')) return undefined;
  throw new InvalidRequestError(400, `image_url is required for ${id}`, 'image_url');
}
