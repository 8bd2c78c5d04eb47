/** Image generation through fal's queue: https://docs.fal.ai/model-apis */
import { type GeneratedFile, type GeneratedImages, type ImageCall, UpstreamError } from '#application';
import { Base64File } from '../../http/json-with-files.ts';
import { toProviderParameters } from '../provider-parameters.ts';
import type { FalQueue } from './queue.ts';

const DEFAULT_NAMES = { size: 'aspect_ratio' };

/** Not sent for a single image, because some models do not have this field. */
const COUNT_FIELD = 'num_images';

export class FalImages {
  constructor(private readonly queue: FalQueue) {}

  async generate({
    model,
    prompt,
    images,
    count,
    parameters,
    wireMapping,
    signal,
  }: ImageCall): Promise<GeneratedImages> {
    const [image] = images;
    const { model: editing } = wireMapping.withImage ?? {};
    const input = {
      ...(prompt === '' ? {} : { prompt }),
      ...(count === 1 ? {} : { [COUNT_FIELD]: count }),
      ...toProviderParameters(parameters, wireMapping, {
        defaultNames: DEFAULT_NAMES,
        bringsImage: image !== undefined,
      }),
      ...(image ? toImageFields(image, editing !== undefined) : {}),
    };
    const queued = await this.queue.submit(image ? (editing ?? model) : model, input, { signal });
    return toGeneratedImages(await this.queue.waitForOutcome(queued, signal), queued.requestId);
  }
}

/** A separate editing model accepts a list of images; any other model accepts one image. */
function toImageFields(image: Blob, isList: boolean) {
  const url = new Base64File(image, `data:${image.type};base64,`);
  return isList ? { image_urls: [url] } : { image_url: url };
}

interface Result {
  readonly images?: unknown;
  readonly image?: unknown;
  readonly has_nsfw_concepts?: unknown;
}

/** An image that fal flags as NSFW is returned black and is billed. It is counted but not delivered. */
function toGeneratedImages(result: unknown, providerRequestId: string): GeneratedImages {
  const { images, image, has_nsfw_concepts: flags } = (result ?? {}) as Result;
  const all: readonly unknown[] = Array.isArray(images) ? images : image === undefined ? [] : [image];
  const isFiltered = (i: number) => Array.isArray(flags) && flags[i] === true;
  const files = all.flatMap((entry, i) => (isFiltered(i) ? [] : toFiles(entry)));
  const usage = { image: all.length };
  if (files.length > 0) return { files, usage, vendorId: providerRequestId };
  const details = { usage, vendorId: providerRequestId };
  if (all.some((_, i) => isFiltered(i)))
    throw new UpstreamError(
      'content_policy_violation',
      'The result violates the content policy of the provider',
      details,
    );
  throw new UpstreamError('upstream_error', 'The provider responded without an image', {
    ...details,
    deliveredText: '',
  });
}

function toFiles(entry: unknown): readonly GeneratedFile[] {
  const url = (entry as { readonly url?: unknown } | null)?.url;
  return typeof url === 'string' && url !== '' ? [{ kind: 'address', url }] : [];
}
