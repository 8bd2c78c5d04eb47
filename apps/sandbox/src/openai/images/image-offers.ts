/** The models for OpenAI's images API. Their prices are independent of the gateway's catalogue. */
import type { PricedUnits } from '../../bill.ts';
import { createError } from '../errors.ts';

/** OpenAI's models, billed by tokens. */
export interface GptImage {
  readonly id: string;
  /** USD per million tokens. */
  readonly usd: { readonly input: string; readonly imageInput: string; readonly imageOutput: string };
  /** By quality: the output tokens of a square image and of an oblong image in a standard size. */
  readonly tokens: Readonly<Record<string, readonly [square: number, oblong: number]>>;
  readonly fidelities: readonly string[];
  /** Whether the model supports sizes other than the three standard ones. */
  readonly supportsAnySize?: boolean;
}

/** Models that are billed by the image. */
export interface FlatImage {
  readonly id: string;
  readonly usd: string;
}

const TOKENS = { low: [272, 408], medium: [1_056, 1_584], high: [4_160, 6_240] } as const;
const MINI_TOKENS = { low: [625, 750], medium: [1_375, 1_875], high: [4_500, 6_500] } as const;
const FULL_USD = { input: '5.00', imageInput: '8.00', imageOutput: '32.00' };
const MINI_USD = { input: '2.00', imageInput: '2.50', imageOutput: '8.00' };

const NEWER = {
  usd: { input: '5.00', imageInput: '8.00', imageOutput: '30.00' },
  tokens: TOKENS,
  fidelities: [],
  supportsAnySize: true,
};

/** Without models that OpenAI has shut down. */
export const GPT_IMAGES: readonly GptImage[] = [
  { id: 'gpt-image-1.5', usd: FULL_USD, tokens: TOKENS, fidelities: ['low', 'high'] },
  { id: 'gpt-image-1-mini', usd: MINI_USD, tokens: MINI_TOKENS, fidelities: ['low'] },
  { id: 'gpt-image-2', ...NEWER },
  { id: 'gpt-image-2.5-sunburst', ...NEWER },
  { id: 'gpt-image-2.5-flare', ...NEWER },
];

export const FLAT_IMAGES: readonly FlatImage[] = [
  { id: 'black-forest-labs/FLUX-1.1-pro', usd: '0.04' },
  { id: 'black-forest-labs/FLUX-1-schnell', usd: '0.0005' },
];

export const IMAGE_MODELS: Readonly<Record<string, readonly { readonly id: string }[]>> = {
  openai: GPT_IMAGES,
  deepinfra: FLAT_IMAGES,
};

/** @throws HttpError 400 for an unknown model */
export function getGptImage(id: unknown): GptImage {
  const model = GPT_IMAGES.find((candidate) => candidate.id === id);
  if (model) return model;
  const message = `Invalid value: '${id}'. No such image model.`;
  throw createError('image_generation_user_error', 400, message, { param: 'model', code: 'invalid_value' });
}

const PER_PRICE = 1_000_000;

export interface ImageTokens {
  readonly input: number;
  readonly imageInput: number;
  readonly imageOutput: number;
}

export function toPricedUnits({ usd }: GptImage, tokens: ImageTokens): readonly PricedUnits[] {
  return (['input', 'imageInput', 'imageOutput'] as const).map((unit) => {
    return { unit, quantity: tokens[unit], per: PER_PRICE, price: usd[unit] };
  });
}
