/** Which endpoints may make the images of a request, and what that costs. */
import type { Endpoint, MediaModel } from '#catalogue';
import type { Payer } from '../../billing/payer.ts';
import type { Order } from '../../billing/purchase.ts';
import type { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import type { ResolvedModel } from '../../routing/preferences.ts';
import { resolveMediaModel, selectMediaRoute } from '../parse-media-request.ts';
import { calculateImagePrice } from './image-pricing.ts';
import { type ImageBody, type ImageParams, parseImageRequest } from './image-request.ts';

/** What is asked for, of whom, and for how much. */
export interface ImageQuote {
  readonly named: ResolvedModel<MediaModel>;
  readonly wanted: ImageParams;
  readonly sale: Order;
  /** Some of the endpoints can use a picture that is brought. */
  readonly usesImage: boolean;
}

export interface QuotedRequest {
  readonly payer: Pick<Payer, 'priceList'>;
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  /** Its pictures came with it. */
  readonly isEdit: boolean;
}

/** Fields of the request itself, which no model needs to support. */
const NO_PARAMETERS: ReadonlySet<string> = new Set([
  ...['model', 'prompt', 'provider', 'response_format', 'stream', 'partial_images', 'aspect_ratio', 'num_images'],
]);

export class ImageQuoter {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly health: EndpointHealth,
  ) {}

  /** @throws InvalidRequestError 400 that names the field, 404 */
  async quote(body: ImageBody, { requestId, source, isEdit, payer }: QuotedRequest): Promise<ImageQuote> {
    const catalogue = await this.catalogues.servedTo(payer);
    const { priceList } = catalogue;
    const named = resolveMediaModel(body.model, 'image', catalogue);
    const { model } = named;
    const wanted = parseImageRequest(body, model);
    const endpoints = this.endpointsFor(body, named, { source, isEdit });
    const price = calculateImagePrice(wanted.count, endpoints, wanted.choices);
    const type = isEdit ? 'image_edit' : 'image_generation';
    const query = { model: model.id, type, source, online: false, free: price === 0n } as const;
    const sale: Order = { id: requestId, query, model, endpoints, priceList, atLeast: price, atMost: price };
    return { named, wanted, sale, usesImage: endpoints.some(acceptsImage) };
  }

  /** A picture that is brought is for those who can use it; where nobody can, it is left aside. */
  private endpointsFor(
    body: ImageBody,
    named: ResolvedModel<MediaModel>,
    { source, isEdit }: Pick<QuotedRequest, 'source' | 'isEdit'>,
  ): readonly Endpoint[] {
    const { model } = named;
    const brings = isEdit || hasImage(body);
    if (!brings && model.capabilities.includes('requires_image'))
      throw new InvalidRequestError(400, `image_url is required for ${model.id}`, 'image_url');
    const able = brings ? model.endpoints.filter(acceptsImage) : model.endpoints;
    if (isEdit && able.length === 0 && model.endpoints.length > 0)
      throw new InvalidRequestError(400, `The model "${model.id}" makes images from words alone`, 'model');
    return selectMediaRoute(named, able, { body, besides: NO_PARAMETERS, source }, this.health);
  }
}

export function hasImage({ image_url }: ImageBody): boolean {
  return (image_url ?? '') !== '';
}

export function acceptsImage({ parameters }: Pick<Endpoint, 'parameters'>): boolean {
  return parameters.includes('image_url');
}
