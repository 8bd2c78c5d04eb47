/** Images of fal's queue: https://docs.fal.ai/model-apis */
import { type GeneratedFile, type GeneratedImages, type ImageCall, UpstreamError } from '#application';
import { Base64 } from '../../http/json-with-files.ts';
import { toProviderParameters } from '../provider-parameters.ts';
import type { FalQueue } from './queue.ts';

const USUAL = { size: 'aspect_ratio' };

/** Most models say how many; one that makes a single picture is not asked. */
const COUNT = 'num_images';

export class FalImages {
  constructor(private readonly queue: FalQueue) {}

  async make({
    model,
    prompt,
    images,
    count,
    parameters,
    wireMapping: wire,
    signal,
  }: ImageCall): Promise<GeneratedImages> {
    const [image] = images;
    const { model: editing } = wire.withImage ?? {};
    const input = {
      ...(prompt === '' ? {} : { prompt }),
      ...(count === 1 ? {} : { [COUNT]: count }),
      ...toProviderParameters(parameters, wire, { usual: USUAL, bringsImage: image !== undefined }),
      ...(image ? sourceOf(image, editing !== undefined) : {}),
    };
    const queued = await this.queue.submit(image ? (editing ?? model) : model, input, { signal });
    return madeIn(await this.queue.outcome(queued, signal), queued.requestId);
  }
}

/** Models that edit take a list where they have another name for it, and else one picture. */
function sourceOf(image: Blob, isList: boolean) {
  const url = new Base64(image, `data:${image.type};base64,`);
  return isList ? { image_urls: [url] } : { image_url: url };
}

interface Result {
  readonly images?: unknown;
  readonly image?: unknown;
  readonly has_nsfw_concepts?: unknown;
}

/** A picture that fal finds indecent is handed over black, and is billed. */
function madeIn(result: unknown, vendorId: string): GeneratedImages {
  const { images, image, has_nsfw_concepts: flags } = (result ?? {}) as Result;
  const all: readonly unknown[] = Array.isArray(images) ? images : image === undefined ? [] : [image];
  const isBlack = (i: number) => Array.isArray(flags) && flags[i] === true;
  const files = all.flatMap((each, i) => (isBlack(i) ? [] : fileIn(each)));
  const usage = { image: all.length };
  if (files.length > 0) return { files, usage, vendorId };
  const more = { usage, vendorId };
  if (all.some((_, i) => isBlack(i)))
    throw new UpstreamError('content_policy_violation', 'What was made is against the rules of the vendor', more);
  throw new UpstreamError('upstream_error', 'The upstream answered without an image', { ...more, deliveredText: '' });
}

function fileIn(each: unknown): readonly GeneratedFile[] {
  const url = (each as { readonly url?: unknown } | null)?.url;
  return typeof url === 'string' && url !== '' ? [{ kind: 'address', url }] : [];
}
