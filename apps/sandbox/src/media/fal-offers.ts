/** What the simulated fal sells: the fields of a request that matter, and prices of its own. */

export interface FalOffer {
  readonly makes: 'images' | 'image' | 'video';
  readonly required: readonly ('prompt' | 'image_url')[];
  /** Fields with words to choose from; the first is what a request gets that chooses none. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** A video's length is one of its fields; a clip has one price whatever its length. */
  readonly per: 'image' | 'second' | 'clip';
  readonly usd: string;
  /** The first variant whose parameters all match applies. */
  readonly others?: readonly { readonly when: Readonly<Record<string, string>>; readonly usd: string }[];
}

const RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4'];
const WIDE = ['16:9', '9:16'];

function images(usd: string, more: Partial<FalOffer> = {}): FalOffer {
  return { makes: 'images', required: ['prompt'], fields: { aspect_ratio: RATIOS }, per: 'image', usd, ...more };
}

function image(usd: string): FalOffer {
  return { makes: 'image', required: ['image_url'], fields: {}, per: 'image', usd };
}

function video(usd: string, fields: FalOffer['fields'], more: Partial<FalOffer> = {}): FalOffer {
  return { makes: 'video', required: ['prompt'], fields, per: 'second', usd, ...more };
}

const FROM_IMAGE: Partial<FalOffer> = { required: ['prompt', 'image_url'] };
const UP_TO_4K = { aspect_ratio: RATIOS, resolution: ['1K', '2K', '4K'] };
const VEO = { duration: ['8s', '6s', '4s'], resolution: ['720p', '1080p'], aspect_ratio: WIDE };
const KLING = { duration: ['5', '10'], aspect_ratio: ['16:9', '9:16', '1:1'] };
const SORA = { duration: ['4', '8', '12'], resolution: ['720p'], aspect_ratio: WIDE };

export const FAL: Readonly<Record<string, FalOffer>> = {
  'fal-ai/flux-pro/kontext': images('0.04', FROM_IMAGE),
  'fal-ai/nano-banana-2': images('0.08', {
    fields: UP_TO_4K,
    others: [
      { when: { resolution: '2K' }, usd: '0.12' },
      { when: { resolution: '4K' }, usd: '0.16' },
    ],
  }),
  'fal-ai/nano-banana-pro': images('0.15', {
    fields: UP_TO_4K,
    others: [{ when: { resolution: '4K' }, usd: '0.30' }],
  }),
  'fal-ai/imagen4/preview': images('0.04'),
  'fal-ai/bytedance/seedream/v4.5/text-to-image': images('0.04'),
  'fal-ai/ideogram/v3': images('0.06', {
    fields: { aspect_ratio: RATIOS, rendering_speed: ['BALANCED', 'TURBO', 'QUALITY'] },
    others: [
      { when: { rendering_speed: 'TURBO' }, usd: '0.03' },
      { when: { rendering_speed: 'QUALITY' }, usd: '0.09' },
    ],
  }),
  'fal-ai/qwen-image': images('0.02'),
  'fal-ai/recraft/v3/text-to-image': images('0.04'),
  'fal-ai/recraft/upscale/crisp': image('0.004'),
  'fal-ai/bria/background/remove': image('0.018'),
  'fal-ai/veo3': video('0.40', VEO),
  'fal-ai/veo3/image-to-video': video('0.40', VEO, FROM_IMAGE),
  'fal-ai/veo3/fast': video('0.15', VEO),
  'fal-ai/kling-video/v2.5-turbo/pro/text-to-video': video('0.07', KLING),
  'fal-ai/kling-video/v2.5-turbo/pro/image-to-video': video('0.07', { duration: KLING.duration }, FROM_IMAGE),
  'fal-ai/sora-2/text-to-video': video('0.10', SORA),
  'fal-ai/sora-2/image-to-video': video('0.10', SORA, FROM_IMAGE),
  'fal-ai/sora-2/text-to-video/pro': video(
    '0.30',
    { ...SORA, resolution: ['720p', '1080p'] },
    { others: [{ when: { resolution: '1080p' }, usd: '0.50' }] },
  ),
  'fal-ai/wan-25-preview/text-to-video': video(
    '0.10',
    { duration: ['5', '10'], resolution: ['720p', '480p', '1080p'], aspect_ratio: ['16:9', '9:16', '1:1'] },
    {
      others: [
        { when: { resolution: '480p' }, usd: '0.05' },
        { when: { resolution: '1080p' }, usd: '0.15' },
      ],
    },
  ),
  'fal-ai/pixverse/v5/text-to-video': video(
    '0.20',
    { duration: ['5', '8'], resolution: ['720p', '540p', '360p'], aspect_ratio: RATIOS },
    {
      per: 'clip',
      others: [
        { when: { resolution: '720p', duration: '8' }, usd: '0.40' },
        { when: { duration: '8' }, usd: '0.30' },
        { when: { resolution: '540p' }, usd: '0.15' },
        { when: { resolution: '360p' }, usd: '0.15' },
      ],
    },
  ),
};
