/** Has images made: called for, fetched at once, and billed by what was delivered. */
import type { Endpoint, MediaModel } from '#catalogue';
import type { Purchase } from '../../billing/purchase.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { GeneratedImages, SourceImage } from '../../providers/media-calls.ts';
import type { ProviderRegistry } from '../../providers/provider.ts';
import { mapNotFoundError, type ResolvedModel } from '../../routing/preferences.ts';
import { pickEndpointParameters } from '../parse-media-request.ts';
import type { ImageFiles, LoadImageInputs } from './image-files.ts';
import { toCallUsages, toLostUsage } from './image-pricing.ts';
import { acceptsImage } from './image-quoter.ts';
import type { ImageParams } from './image-request.ts';

export interface ImageOrder {
  readonly named: ResolvedModel<MediaModel>;
  readonly wanted: ImageParams;
  readonly pictures: LoadImageInputs;
}

export class ImageMaker {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly files: ImageFiles,
  ) {}

  /**
   * One call, which may fall back, and then as many at once of the same endpoint as are needed for the rest. What some of
   * them have made is delivered, though others fail.
   * @throws UpstreamError when there is no image
   */
  async make(order: ImageOrder, purchase: Purchase): Promise<readonly SourceImage[]> {
    const callFor = await this.calls(order, purchase);
    const { count } = order.wanted;
    const { answer, endpoint } = await purchase.ask(callFor(count));
    const [first = count, ...others] = countsOf(endpoint, count);
    const done = await Promise.allSettled([
      this.delivered(order, purchase, answer, first),
      ...others.map(async (wanted) => {
        const { answer } = await purchase.askAgain(callFor(wanted), endpoint);
        return this.delivered(order, purchase, answer, wanted);
      }),
    ]);
    const made = done.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    const broken = done.find((each) => each.status === 'rejected');
    const failure = broken ? toUpstreamError(broken.reason) : undefined;
    if (made.length === 0)
      throw failure ?? new UpstreamError('upstream_error', 'What the upstream made cannot be had, or is no picture');
    purchase.cutBy = failure;
    return made;
  }

  /** Calls for so many images, as far as an endpoint makes them at once. */
  private async calls(
    { named, wanted, pictures }: ImageOrder,
    { hold, signal }: Purchase,
  ): Promise<(count: number) => UpstreamCall<GeneratedImages>> {
    const { image, mask } = await pictures(signal);
    return (count) => ({
      make: (endpoint) => {
        const { upstream, wire = {}, parameters } = endpoint;
        const images = this.providers.of(hold, upstream, 'images');
        const asked = {
          model: endpoint.model + named.passedOn,
          prompt: wanted.prompt,
          images: image && acceptsImage(endpoint) ? [image] : [],
          mask: parameters.includes('mask') ? mask : undefined,
          count: countOf(endpoint, count),
          parameters: pickEndpointParameters(endpoint, wanted.parameters),
        };
        return mapNotFoundError(named, endpoint, images({ ...asked, wire, signal }));
      },
      counted: async () => ({ image: count }),
      lost: (endpoint, usage) => toLostUsage(countOf(endpoint, count), usage, endpoint, wanted.choices),
    });
  }

  /** Fetches what a call has made, and bills it. No more than was wanted is delivered. */
  private async delivered(
    { wanted }: ImageOrder,
    purchase: Purchase,
    made: GeneratedImages,
    count: number,
  ): Promise<readonly SourceImage[]> {
    const endpoint = purchase.endpoint as Endpoint;
    const files = made.files.slice(0, count);
    const fetched = await Promise.all(files.map((file) => this.files.made(endpoint.upstream, file, purchase.signal)));
    const pictures = fetched.filter((each) => each !== undefined);
    for (const use of toCallUsages(made, pictures.length, endpoint, wanted.choices)) purchase.billMade(use);
    return pictures;
  }
}

function countOf({ imagesPerCall = 1 }: Endpoint, count: number): number {
  return Math.min(imagesPerCall, count);
}

/** How many each call makes. */
function countsOf(endpoint: Endpoint, count: number): readonly number[] {
  const each = countOf(endpoint, count);
  return Array.from({ length: Math.ceil(count / each) }, (_, i) => Math.min(each, count - i * each));
}
