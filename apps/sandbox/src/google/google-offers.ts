/** The models of the simulated Google APIs, with prices that are not read from the catalogue. */

export interface ImageOffer {
  /** USD per million tokens. */
  readonly usd: { readonly input: string; readonly output: string; readonly image: string };
  /** Tokens of a generated image, by its size. */
  readonly tokens: Readonly<Record<string, number>>;
  /** Tokens of an input image. */
  readonly inputTokens: number;
  readonly ratios: readonly string[];
  /** Reasoning tokens, unless the directive sets them. They are billed as text output. */
  readonly thoughts: number;
}

const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];
const EXTREMES = ['1:4', '4:1', '1:8', '8:1'];

const FLASH: ImageOffer = {
  usd: { input: '0.50', output: '3.00', image: '60.00' },
  tokens: { '512': 747, '1K': 1_120, '2K': 1_680, '4K': 2_520 },
  inputTokens: 1_120,
  ratios: [...RATIOS, ...EXTREMES],
  thoughts: 64,
};
const PRO: ImageOffer = {
  usd: { input: '2.00', output: '12.00', image: '120.00' },
  tokens: { '1K': 1_120, '2K': 1_120, '4K': 2_000 },
  inputTokens: 560,
  ratios: RATIOS,
  thoughts: 64,
};

export const GEMINI_IMAGES: Readonly<Record<string, ImageOffer>> = {
  'gemini-2.5-flash-image': {
    usd: { input: '0.30', output: '2.50', image: '30.00' },
    tokens: { '1K': 1_290 },
    inputTokens: 258,
    ratios: RATIOS,
    thoughts: 0,
  },
  'gemini-3.1-flash-image': FLASH,
  'gemini-3-pro-image': PRO,
};

export interface VideoOffer {
  /** USD per second by resolution. */
  readonly usd: Readonly<Record<string, string>>;
}

export const VEO: Readonly<Record<string, VideoOffer>> = {
  'veo-3.0-generate-001': { usd: { '720p': '0.40', '1080p': '0.40' } },
  'veo-3.0-fast-generate-001': { usd: { '720p': '0.15', '1080p': '0.15' } },
  'veo-3.1-generate-preview': { usd: { '720p': '0.40', '1080p': '0.40', '4k': '0.60' } },
  'veo-3.1-fast-generate-preview': { usd: { '720p': '0.15', '1080p': '0.15', '4k': '0.35' } },
};
