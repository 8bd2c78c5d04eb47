/** Generates images: calls the provider, fetches the files at once, and bills what was delivered. */
import type { Endpoint, MediaModel } from '#catalogue';
import { addUsage, type Usage } from '#domain';
import type { Purchase } from '../../billing/purchase.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { GeneratedImages, ImageProperties, SourceImage } from '../../providers/media-calls.ts';
import type { ProviderRegistry } from '../../providers/provider.ts';
import { mapNotFoundError, type ResolvedModel } from '../../routing/preferences.ts';
import { pickEndpointParameters } from '../parse-media-request.ts';
import type { ImageFiles, LoadImageInputs } from './image-files.ts';
import { toCallUsages, toLostUsage } from './image-pricing.ts';
import { acceptsImage } from './image-quoter.ts';
import type { ImageParams } from './image-request.ts';

export interface ImageOrder {
  readonly resolved: ResolvedModel<MediaModel>;
  readonly params: ImageParams;
  readonly inputs: LoadImageInputs;
}

/** The images of one or several calls. */
export interface ImageBatch {
  readonly images: readonly SourceImage[];
  /** What the provider counted for all calls; undefined if it did not report a call. */
  readonly usage: Usage | undefined;
  readonly properties: ImageProperties;
}

export class ImageGenerator {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly files: ImageFiles,
  ) {}

  /**
   * Makes one call, which may fall back, and then concurrent calls to the same endpoint for the remaining images.
   * Images of successful calls are delivered even if others fail.
   * @throws UpstreamError if there is no image
   */
  async generate(order: ImageOrder, purchase: Purchase): Promise<ImageBatch> {
    const createCall = await this.prepareCalls(order, purchase);
    const { count } = order.params;
    const { response, endpoint } = await purchase.call(createCall(count));
    const [first = count, ...otherCounts] = listCallCounts(endpoint, count);
    const done = await Promise.allSettled([
      this.fetchAndBill(order, purchase, response, first),
      ...otherCounts.map(async (otherCount) => {
        const { response } = await purchase.callSameEndpoint(createCall(otherCount), endpoint);
        return this.fetchAndBill(order, purchase, response, otherCount);
      }),
    ]);
    const batch = mergeBatches(done.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])));
    const rejected = done.find((result) => result.status === 'rejected');
    const failure = rejected ? toUpstreamError(rejected.reason) : undefined;
    if (batch.images.length === 0)
      throw failure ?? new UpstreamError('upstream_error', 'The generated files are unavailable or are not images');
    purchase.endedBy = failure;
    return batch;
  }

  /**
   * Returns a function that creates a call for a number of images, at most as many as an endpoint generates at once.
   */
  private async prepareCalls(
    { resolved, params, inputs }: ImageOrder,
    { hold, signal }: Purchase,
  ): Promise<(count: number) => UpstreamCall<GeneratedImages>> {
    const { image, mask } = await inputs(signal);
    return (count) => ({
      send: (endpoint) => {
        const { upstream, wire = {}, parameters } = endpoint;
        const images = this.providers.get(hold, upstream, 'images');
        const request = {
          model: endpoint.model + resolved.forwardedSuffix,
          prompt: params.prompt,
          images: image && acceptsImage(endpoint) ? [image] : [],
          mask: parameters.includes('mask') ? mask : undefined,
          count: getCountPerCall(endpoint, count),
          parameters: pickEndpointParameters(endpoint, params.parameters),
          wireMapping: wire,
          signal,
        };
        return mapNotFoundError(resolved, endpoint, images(request));
      },
      estimateUsage: async () => ({ image: count }),
      getLostUsage: (endpoint, usage) => toLostUsage(getCountPerCall(endpoint, count), usage, endpoint, params.choices),
    });
  }

  /** Fetches the images of a call and bills them. Delivers no more images than were requested. */
  private async fetchAndBill(
    { params }: ImageOrder,
    purchase: Purchase,
    generated: GeneratedImages,
    count: number,
  ): Promise<ImageBatch> {
    const endpoint = purchase.endpoint as Endpoint;
    const files = generated.files.slice(0, count);
    const fetched = await Promise.all(
      files.map((file) => this.files.fetchGenerated(endpoint.upstream, file, purchase.signal)),
    );
    const images = fetched.filter((image) => image !== undefined);
    for (const use of toCallUsages(generated, images.length, endpoint, params.choices)) purchase.billUsage(use);
    const { usage, properties = {} } = generated;
    return { images, usage, properties };
  }
}

function mergeBatches(batches: readonly ImageBatch[]): ImageBatch {
  const usages = batches.flatMap(({ usage }) => usage ?? []);
  return {
    images: batches.flatMap(({ images }) => images),
    usage: usages.length === batches.length ? usages.reduce(addUsage, {}) : undefined,
    properties: batches[0]?.properties ?? {},
  };
}

function getCountPerCall({ imagesPerCall = 1 }: Endpoint, count: number): number {
  return Math.min(imagesPerCall, count);
}

/** Returns the number of images of each call. */
function listCallCounts(endpoint: Endpoint, count: number): readonly number[] {
  const perCall = getCountPerCall(endpoint, count);
  return Array.from({ length: Math.ceil(count / perCall) }, (_, i) => Math.min(perCall, count - i * perCall));
}
