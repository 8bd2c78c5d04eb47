/** What the simulated fal sells: the fields that its models take, by its own description of them, and prices of its own. */

export interface FalOffer {
  readonly makes: 'images' | 'image' | 'video';
  readonly required: readonly ('prompt' | 'image_url' | 'image_urls')[];
  /**
   * Fields with words to choose from; the first is what a request gets that chooses none. Those with `true` are booleans.
   * What is no field is not looked at, as with fal.
   */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** Whether it takes `image_size`, and what it is by default. */
  readonly imageSize?: string;
  /** Fields with numbers, each at least 1, which is the default, and at most this. */
  readonly counts: Readonly<Record<string, number>>;
  /** A video's length is one of its fields; a clip has one price whatever its length. */
  readonly per: 'image' | 'second' | 'clip';
  readonly usd: string;
  /** The first variant whose parameters all match applies. */
  readonly others?: readonly Variant[];
  /** What comes on top, once for each request. */
  readonly extras?: readonly Variant[];
}

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
const SEARCHED = [{ when: { enable_web_search: 'true' }, usd: '0.015' }];
const AT_ONCE = { num_images: 4 };

function images(usd: string, more: Partial<FalOffer>): FalOffer {
  return { makes: 'images', required: ['prompt'], fields: {}, counts: AT_ONCE, per: 'image', usd, ...more };
}

function image(usd: string): FalOffer {
  return { makes: 'image', required: ['image_url'], fields: {}, counts: {}, per: 'image', usd };
}

function video(usd: string, fields: FalOffer['fields'], more: Partial<FalOffer> = {}): FalOffer {
  return { makes: 'video', required: ['prompt'], fields, counts: {}, per: 'second', usd, ...more };
}

const FROM_IMAGE: Partial<FalOffer> = { required: ['prompt', 'image_url'] };
const FROM_IMAGES: Partial<FalOffer> = { required: ['prompt', 'image_urls'] };

const BANANA_2 = {
  fields: {
    aspect_ratio: ['auto', ...RATIOS, ...EXTREMES],
    resolution: ['1K', '0.5K', '2K', '4K'],
    ...ANY_FORMAT,
    ...SEARCH,
  },
  others: [
    { when: { resolution: '0.5K' }, usd: '0.06' },
    { when: { resolution: '2K' }, usd: '0.12' },
    { when: { resolution: '4K' }, usd: '0.16' },
  ],
  extras: SEARCHED,
};
const BANANA_PRO = {
  fields: { aspect_ratio: ['1:1', 'auto', ...RATIOS], resolution: ['1K', '2K', '4K'], ...ANY_FORMAT, ...SEARCH },
  others: [{ when: { resolution: '4K' }, usd: '0.30' }],
  extras: SEARCHED,
};
const BANANA = { fields: { aspect_ratio: ['1:1', ...RATIOS], ...ANY_FORMAT } };
const SEEDREAM = { imageSize: 'auto_2K', counts: { num_images: 6, max_images: 6 } };

const SOUND = { generate_audio: ['true', 'false'] };
const VEO = { duration: ['8s', '6s', '4s'], resolution: ['720p', '1080p'], ...SOUND };
const VEO_WIDE = { ...VEO, aspect_ratio: WIDE };
const VEO_LIKE_IMAGE = { ...VEO, aspect_ratio: ['auto', ...WIDE] };
const silent = (usd: string) => ({ others: [{ when: { generate_audio: 'false' }, usd }] });
const KLING = { duration: ['5', '10'] };
const SORA = { duration: ['4', '8', '12', '16', '20'], aspect_ratio: WIDE };
const WAN_RESOLUTIONS = ['1080p', '720p', '480p'];
const WAN_PRICES = {
  others: [
    { when: { resolution: '480p' }, usd: '0.05' },
    { when: { resolution: '720p' }, usd: '0.10' },
  ],
};

export const FAL: Readonly<Record<string, FalOffer>> = {
  'fal-ai/flux-pro/kontext': images('0.04', {
    ...FROM_IMAGE,
    fields: { aspect_ratio: ['1:1', ...RATIOS, '9:21'], output_format: ['jpeg', 'png'] },
  }),
  'fal-ai/nano-banana': images('0.039', BANANA),
  'fal-ai/nano-banana/edit': images('0.039', { ...BANANA, ...FROM_IMAGES }),
  'fal-ai/nano-banana-2': images('0.08', BANANA_2),
  'fal-ai/nano-banana-2/edit': images('0.08', { ...BANANA_2, ...FROM_IMAGES }),
  'fal-ai/nano-banana-pro': images('0.15', BANANA_PRO),
  'fal-ai/nano-banana-pro/edit': images('0.15', { ...BANANA_PRO, ...FROM_IMAGES }),
  'fal-ai/imagen4/preview': images('0.04', {
    fields: { aspect_ratio: FEW_RATIOS, resolution: ['1K', '2K'], ...ANY_FORMAT },
  }),
  'fal-ai/bytedance/seedream/v4.5/text-to-image': images('0.04', SEEDREAM),
  'fal-ai/bytedance/seedream/v4.5/edit': images('0.04', { ...SEEDREAM, ...FROM_IMAGES }),
  'fal-ai/ideogram/v3': images('0.06', {
    imageSize: 'square_hd',
    fields: { rendering_speed: ['BALANCED', 'TURBO', 'QUALITY'] },
    counts: { num_images: 8 },
    others: [
      { when: { rendering_speed: 'TURBO' }, usd: '0.03' },
      { when: { rendering_speed: 'QUALITY' }, usd: '0.09' },
    ],
  }),
  'fal-ai/qwen-image': images('0.02', { imageSize: 'landscape_4_3', fields: { output_format: ['png', 'jpeg'] } }),
  'fal-ai/recraft/v3/text-to-image': images('0.04', { imageSize: 'square_hd', counts: {} }),
  'fal-ai/recraft/upscale/crisp': image('0.004'),
  'fal-ai/bria/background/remove': image('0.018'),
  'fal-ai/veo3': video('0.40', VEO_WIDE, silent('0.20')),
  'fal-ai/veo3/image-to-video': video('0.40', VEO_LIKE_IMAGE, { ...FROM_IMAGE, ...silent('0.20') }),
  'fal-ai/veo3/fast': video('0.15', VEO_WIDE, silent('0.10')),
  'fal-ai/veo3/fast/image-to-video': video('0.15', VEO_LIKE_IMAGE, { ...FROM_IMAGE, ...silent('0.10') }),
  'fal-ai/kling-video/v2.5-turbo/pro/text-to-video': video('0.07', { ...KLING, aspect_ratio: [...WIDE, '1:1'] }),
  'fal-ai/kling-video/v2.5-turbo/pro/image-to-video': video('0.07', KLING, FROM_IMAGE),
  'fal-ai/sora-2/text-to-video': video('0.10', { ...SORA, resolution: ['720p'] }),
  'fal-ai/sora-2/image-to-video': video(
    '0.10',
    { ...SORA, aspect_ratio: ['auto', ...WIDE], resolution: ['auto', '720p'] },
    FROM_IMAGE,
  ),
  'fal-ai/sora-2/text-to-video/pro': video(
    '0.50',
    { ...SORA, resolution: ['1080p', '720p', 'true_1080p'] },
    {
      others: [
        { when: { resolution: '720p' }, usd: '0.30' },
        { when: { resolution: 'true_1080p' }, usd: '0.70' },
      ],
    },
  ),
  'fal-ai/wan-25-preview/text-to-video': video(
    '0.15',
    {
      duration: ['5', ...Array.from({ length: 14 }, (_, i) => String(i + 2)).filter((each) => each !== '5')],
      resolution: WAN_RESOLUTIONS,
      aspect_ratio: ['16:9', '9:16', '1:1', '4:3', '3:4'],
    },
    WAN_PRICES,
  ),
  'fal-ai/wan-25-preview/image-to-video': video(
    '0.15',
    { duration: ['5', '10'], resolution: WAN_RESOLUTIONS },
    { ...FROM_IMAGE, ...WAN_PRICES },
  ),
  'fal-ai/pixverse/v5/text-to-video': video(
    '0.20',
    {
      duration: ['5', '8'],
      resolution: ['720p', '540p', '360p', '1080p'],
      aspect_ratio: ['16:9', '4:3', '1:1', '3:4', '9:16'],
    },
    {
      per: 'clip',
      others: [
        { when: { resolution: '1080p' }, usd: '0.40' },
        { when: { resolution: '720p', duration: '8' }, usd: '0.40' },
        { when: { duration: '8' }, usd: '0.30' },
        { when: { resolution: '540p' }, usd: '0.15' },
        { when: { resolution: '360p' }, usd: '0.15' },
      ],
    },
  ),
};
