/** The image models of the simulated providers that speak OpenAI's images API, each with its own prices. */
import { refusalOf } from '../errors.ts';

export interface ImageModel {
  readonly id: string;
  /** USD for an image by its quality: a square one, and one of another shape. */
  readonly usd: Readonly<Record<string, readonly [square: string, oblong: string]>>;
  /** Whether a request may choose the quality, and hand in an image. */
  readonly isOpenAi: boolean;
}

function gpt(id: string, low: [string, string], medium: [string, string], high: [string, string]): ImageModel {
  return { id, usd: { low, medium, high }, isOpenAi: true };
}

function flat(id: string, usd: string): ImageModel {
  return { id, usd: { medium: [usd, usd] }, isOpenAi: false };
}

export const IMAGE_MODELS: Readonly<Record<string, readonly ImageModel[]>> = {
  openai: [
    gpt('gpt-image-1.5', ['0.009', '0.013'], ['0.034', '0.05'], ['0.133', '0.2']),
    gpt('gpt-image-1', ['0.011', '0.016'], ['0.042', '0.063'], ['0.167', '0.25']),
    gpt('gpt-image-1-mini', ['0.005', '0.006'], ['0.011', '0.015'], ['0.036', '0.052']),
  ],
  deepinfra: [flat('black-forest-labs/FLUX-1.1-pro', '0.04'), flat('black-forest-labs/FLUX-1-schnell', '0.0005')],
};

/** @throws Refusal 400 */
export function findImageModel(provider: string, id: unknown): ImageModel {
  const model = IMAGE_MODELS[provider]?.find((each) => each.id === id);
  if (model) return model;
  const message = `Invalid value: '${id}'. No such image model.`;
  throw refusalOf('image_generation_user_error', 400, message, { param: 'model', code: 'invalid_value' });
}
