/** The models of the simulated fal: fields as in fal's schemas, and prices that are not read from the catalogue. */

export interface FalOffer {
  readonly output: 'images' | 'image' | 'video';
  readonly required: readonly ('prompt' | 'image_url' | 'image_urls')[];
  /**
   * Fields with their values; the first value is the default. Fields with the value `true` are booleans. Unknown fields
   * are ignored, as by fal.
   */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** Default of `image_size`; undefined if the model does not have this field. */
  readonly imageSize?: string;
  /** Numeric fields and their maximum; minimum and default are 1. */
  readonly counts: Readonly<Record<string, number>>;
  /** Fields of the result in addition to its files. */
  readonly resultFields?: readonly ResultField[];
  /** Whether the result has the size of each file, and the length of a video. */
  readonly describesFiles?: boolean;
  /** What `usd` pays for. The seconds of a video are its field `duration`; a clip counts as 1, whatever its length. */
  readonly per: 'image' | 'second' | 'clip';
  readonly usd: string;
  /** The first variant whose fields all match replaces `usd`. */
  readonly variants?: readonly Variant[];
  /** Each extra whose fields all match is added once per request. */
  readonly extras?: readonly Variant[];
}

export type ResultField = 'description' | 'has_nsfw_concepts' | 'prompt' | 'seed' | 'timings' | 'video_id';

interface Variant {
  readonly when: Readonly<Record<string, string>>;
  readonly usd: string;
}

const FEW_RATIOS = ['1:1', '16:9', '9:16', '4:3', '3:4'];
const RATIOS = ['21:9', '16:9', '3:2', '4:3', '5:4', '1:1', '4:5', '3:4', '2:3', '9:16'];
const EXTREMES = ['4:1', '1:4', '8:1', '1:8'];
const WIDE = ['16:9', '9:16'];
const ANY_FORMAT = { output_format: ['png', 'jpeg', 'webp'] };
const SEARCH = { enable_web_search: ['false', 'true'] };
const SEARCH_EXTRAS = [{ when: { enable_web_search: 'true' }, usd: '0.015' }];
const IMAGE_COUNTS = { num_images: 4 };

function createImagesOffer(usd: string, overrides: Partial<FalOffer>): FalOffer {
  return { output: 'images', required: ['prompt'], fields: {}, counts: IMAGE_COUNTS, per: 'image', usd, ...overrides };
}

function createImageOffer(usd: string): FalOffer {
  return { output: 'image', required: ['image_url'], fields: {}, counts: {}, per: 'image', usd };
}

function createVideoOffer(usd: string, fields: FalOffer['fields'], overrides: Partial<FalOffer> = {}): FalOffer {
  return { output: 'video', required: ['prompt'], fields, counts: {}, per: 'second', usd, ...overrides };
}

const FROM_IMAGE: Partial<FalOffer> = { required: ['prompt', 'image_url'] };
const FROM_IMAGES: Partial<FalOffer> = { required: ['prompt', 'image_urls'] };

const DIFFUSION_RESULT = {
  describesFiles: true,
  resultFields: ['has_nsfw_concepts', 'prompt', 'seed', 'timings'],
} satisfies Partial<FalOffer>;
const DESCRIBED_RESULT = { describesFiles: true, resultFields: ['description'] } satisfies Partial<FalOffer>;
const SEEDED_RESULT = { describesFiles: true, resultFields: ['seed'] } satisfies Partial<FalOffer>;

const BANANA_2 = {
  ...DESCRIBED_RESULT,
  fields: {
    aspect_ratio: ['auto', ...RATIOS, ...EXTREMES],
    resolution: ['1K', '0.5K', '2K', '4K'],
    ...ANY_FORMAT,
    ...SEARCH,
  },
  variants: [
    { when: { resolution: '0.5K' }, usd: '0.06' },
    { when: { resolution: '2K' }, usd: '0.12' },
    { when: { resolution: '4K' }, usd: '0.16' },
  ],
  extras: SEARCH_EXTRAS,
};
const BANANA_PRO = {
  ...DESCRIBED_RESULT,
  fields: { aspect_ratio: ['1:1', 'auto', ...RATIOS], resolution: ['1K', '2K', '4K'], ...ANY_FORMAT, ...SEARCH },
  variants: [{ when: { resolution: '4K' }, usd: '0.30' }],
  extras: SEARCH_EXTRAS,
};
const BANANA = { ...DESCRIBED_RESULT, fields: { aspect_ratio: ['1:1', ...RATIOS], ...ANY_FORMAT } };
const SEEDREAM = { ...SEEDED_RESULT, imageSize: 'auto_2K', counts: { num_images: 6, max_images: 6 } };

const AUDIO = { generate_audio: ['true', 'false'] };
const VEO = { duration: ['8s', '6s', '4s'], resolution: ['720p', '1080p'], ...AUDIO };
const VEO_WIDE = { ...VEO, aspect_ratio: WIDE };
const VEO_FROM_IMAGE = { ...VEO, aspect_ratio: ['auto', ...WIDE] };
const priceWithoutAudio = (usd: string) => ({ variants: [{ when: { generate_audio: 'false' }, usd }] });
const KLING = { duration: ['5', '10'] };
const SORA = { duration: ['4', '8', '12', '16', '20'], aspect_ratio: WIDE };
const SORA_RESULT = { describesFiles: true, resultFields: ['video_id'] } satisfies Partial<FalOffer>;
const WAN_RESOLUTIONS = ['1080p', '720p'];
const WAN_OVERRIDES = {
  ...SEEDED_RESULT,
  variants: [
    { when: { resolution: '480p' }, usd: '0.05' },
    { when: { resolution: '720p' }, usd: '0.10' },
  ],
};

export const FAL_OFFERS: Readonly<Record<string, FalOffer>> = {
  'fal-ai/flux-pro/kontext': createImagesOffer('0.04', {
    ...FROM_IMAGE,
    ...DIFFUSION_RESULT,
    fields: { aspect_ratio: ['1:1', ...RATIOS, '9:21'], output_format: ['jpeg', 'png'] },
  }),
  'fal-ai/nano-banana': createImagesOffer('0.039', BANANA),
  'fal-ai/nano-banana/edit': createImagesOffer('0.039', { ...BANANA, ...FROM_IMAGES }),
  'fal-ai/nano-banana-2': createImagesOffer('0.08', BANANA_2),
  'fal-ai/nano-banana-2/edit': createImagesOffer('0.08', { ...BANANA_2, ...FROM_IMAGES }),
  'fal-ai/nano-banana-pro': createImagesOffer('0.15', BANANA_PRO),
  'fal-ai/nano-banana-pro/edit': createImagesOffer('0.15', { ...BANANA_PRO, ...FROM_IMAGES }),
  'fal-ai/imagen4/preview': createImagesOffer('0.04', {
    ...DESCRIBED_RESULT,
    fields: { aspect_ratio: FEW_RATIOS, resolution: ['1K', '2K'], ...ANY_FORMAT },
  }),
  'fal-ai/bytedance/seedream/v4.5/text-to-image': createImagesOffer('0.04', SEEDREAM),
  'fal-ai/bytedance/seedream/v4.5/edit': createImagesOffer('0.04', { ...SEEDREAM, ...FROM_IMAGES }),
  'fal-ai/ideogram/v3': createImagesOffer('0.06', {
    imageSize: 'square_hd',
    resultFields: ['seed'],
    fields: { rendering_speed: ['BALANCED', 'TURBO', 'QUALITY'] },
    counts: { num_images: 8 },
    variants: [
      { when: { rendering_speed: 'TURBO' }, usd: '0.03' },
      { when: { rendering_speed: 'QUALITY' }, usd: '0.09' },
    ],
  }),
  'fal-ai/qwen-image': createImagesOffer('0.02', {
    ...DIFFUSION_RESULT,
    imageSize: 'landscape_4_3',
    fields: { output_format: ['png', 'jpeg'] },
  }),
  'fal-ai/recraft/v3/text-to-image': createImagesOffer('0.04', { imageSize: 'square_hd', counts: {} }),
  'fal-ai/recraft/upscale/crisp': createImageOffer('0.004'),
  'fal-ai/bria/background/remove': { ...createImageOffer('0.018'), describesFiles: true },
  'fal-ai/veo3': createVideoOffer('0.40', VEO_WIDE, priceWithoutAudio('0.20')),
  'fal-ai/veo3/image-to-video': createVideoOffer('0.40', VEO_FROM_IMAGE, {
    ...FROM_IMAGE,
    ...priceWithoutAudio('0.20'),
  }),
  'fal-ai/veo3/fast': createVideoOffer('0.15', VEO_WIDE, priceWithoutAudio('0.10')),
  'fal-ai/veo3/fast/image-to-video': createVideoOffer('0.15', VEO_FROM_IMAGE, {
    ...FROM_IMAGE,
    ...priceWithoutAudio('0.10'),
  }),
  'fal-ai/kling-video/v2.5-turbo/pro/text-to-video': createVideoOffer('0.07', {
    ...KLING,
    aspect_ratio: [...WIDE, '1:1'],
  }),
  'fal-ai/kling-video/v2.5-turbo/pro/image-to-video': createVideoOffer('0.07', KLING, FROM_IMAGE),
  'fal-ai/sora-2/text-to-video': createVideoOffer('0.10', { ...SORA, resolution: ['720p'] }, SORA_RESULT),
  'fal-ai/sora-2/image-to-video': createVideoOffer(
    '0.10',
    { ...SORA, aspect_ratio: ['auto', ...WIDE], resolution: ['auto', '720p'] },
    { ...FROM_IMAGE, ...SORA_RESULT },
  ),
  'fal-ai/sora-2/text-to-video/pro': createVideoOffer(
    '0.50',
    { ...SORA, resolution: ['1080p', '720p', 'true_1080p'] },
    {
      ...SORA_RESULT,
      variants: [
        { when: { resolution: '720p' }, usd: '0.30' },
        { when: { resolution: 'true_1080p' }, usd: '0.70' },
      ],
    },
  ),
  'fal-ai/wan-25-preview/text-to-video': createVideoOffer(
    '0.15',
    {
      duration: ['5', ...Array.from({ length: 14 }, (_, i) => String(i + 2)).filter((seconds) => seconds !== '5')],
      resolution: WAN_RESOLUTIONS,
      aspect_ratio: ['16:9', '9:16', '1:1', '4:3', '3:4'],
    },
    WAN_OVERRIDES,
  ),
  'fal-ai/wan-25-preview/image-to-video': createVideoOffer(
    '0.15',
    { duration: ['5', '10'], resolution: [...WAN_RESOLUTIONS, '480p'] },
    { ...FROM_IMAGE, ...WAN_OVERRIDES },
  ),
  'fal-ai/pixverse/v5/text-to-video': createVideoOffer(
    '0.20',
    {
      duration: ['5', '8'],
      resolution: ['720p', '540p', '360p', '1080p'],
      aspect_ratio: ['16:9', '4:3', '1:1', '3:4', '9:16'],
    },
    {
      per: 'clip',
      variants: [
        { when: { resolution: '1080p' }, usd: '0.40' },
        { when: { resolution: '720p', duration: '8' }, usd: '0.40' },
        { when: { duration: '8' }, usd: '0.30' },
        { when: { resolution: '540p' }, usd: '0.15' },
        { when: { resolution: '360p' }, usd: '0.15' },
      ],
    },
  ),
};
