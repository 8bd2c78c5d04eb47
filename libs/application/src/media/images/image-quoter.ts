/** Selects the endpoints for an image request, and calculates its price. */
import { type Endpoint, isFreeTier, type MediaModel } from '#catalogue';
import type { Randomness } from '#kernel';
import type { Order } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
import type { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import type { ResolvedModel } from '../../routing/preferences.ts';
import { resolveMediaModel, selectMediaRoute } from '../parse-media-request.ts';
import { calculateImagePrice } from './image-pricing.ts';
import { type ImageBody, type ImageParams, parseImageRequest } from './image-request.ts';

export interface ImageQuote {
  readonly resolved: ResolvedModel<MediaModel>;
  readonly params: ImageParams;
  readonly order: Order;
  /** Whether at least one of the endpoints accepts an image. */
  readonly usesImage: boolean;
}

export interface ImageQuoteParams {
  readonly payer: Pick<Payer, 'priceList'>;
  readonly requestId: string;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
  /** Whether the request is an edit, with uploaded images. */
  readonly isEdit: boolean;
}

/** Fields of the request itself, which no model needs to support. */
const NON_PARAMETER_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'prompt',
  'provider',
  'response_format',
  'stream',
  'partial_images',
  'aspect_ratio',
  'num_images',
]);

export class ImageQuoter {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly health: EndpointHealth,
    private readonly randomness: Pick<Randomness, 'chance'>,
  ) {}

  /** @throws InvalidRequestError 400 if a field is invalid; 404 if the model or an endpoint for it was not found */
  async quote(body: ImageBody, { requestId, source, isEdit, payer }: ImageQuoteParams): Promise<ImageQuote> {
    const catalogue = await this.catalogues.loadForPayer(payer);
    const { priceList } = catalogue;
    const resolved = resolveMediaModel(body.model, 'image', catalogue);
    const { model } = resolved;
    const params = parseImageRequest(body, model);
    const endpoints = this.selectEndpoints(body, resolved, { source, isEdit });
    const price = calculateImagePrice(params.count, endpoints, params.choices);
    const type = isEdit ? 'image_edit' : 'image_generation';
    const query = { model: model.id, type, source, online: false, free: isFreeTier(model) } as const;
    const order: Order = { id: requestId, query, model, endpoints, priceList, minPrice: price, maxPrice: price };
    return { resolved, params, order, usesImage: endpoints.some(acceptsImage) };
  }

  /**
   * Selects the endpoints. Only endpoints that accept an image may serve a request with one; if no endpoint does, the
   * image is ignored, except for edits.
   */
  private selectEndpoints(
    body: ImageBody,
    resolved: ResolvedModel<MediaModel>,
    { source, isEdit }: Pick<ImageQuoteParams, 'source' | 'isEdit'>,
  ): readonly Endpoint[] {
    const { model } = resolved;
    const hasSourceImage = isEdit || hasImage(body);
    if (!hasSourceImage && model.capabilities.includes('requires_image'))
      throw new InvalidRequestError(400, `image_url is required for ${model.id}`, 'image_url');
    const capable = hasSourceImage ? model.endpoints.filter(acceptsImage) : model.endpoints;
    if (isEdit && capable.length === 0 && model.endpoints.length > 0)
      throw new InvalidRequestError(400, `The model "${model.id}" does not support image editing`, 'model');
    const request = { body, ignoredFields: NON_PARAMETER_FIELDS, source, chance: this.randomness.chance() };
    return selectMediaRoute(resolved, capable, request, this.health);
  }
}

export function hasImage({ image_url }: ImageBody): boolean {
  return (image_url ?? '') !== '';
}

export function acceptsImage({ parameters }: Pick<Endpoint, 'parameters'>): boolean {
  return parameters.includes('image_url');
}
