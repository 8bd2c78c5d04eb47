/** Parses a request for images, once for all endpoints that may serve it. */
import type { MediaChoices, MediaModel } from '#catalogue';
import { InvalidRequestError } from '../../errors.ts';
import type { MediaParameters } from '../../providers/media-calls.ts';
import { type ChoiceFields, parseChoices, parseMediaParameters, parsePrompt } from '../parse-media-request.ts';

/** A request in OpenAI's format with the aliases that clients use, as far as the gateway reads it. */
export interface ImageBody {
  readonly model: string;
  readonly prompt?: string | null;
  readonly n?: number | null;
  readonly num_images?: number | null;
  readonly size?: string | null;
  readonly aspect_ratio?: string | null;
  readonly quality?: string | null;
  readonly resolution?: string | null;
  readonly provider?: unknown;
  readonly [field: string]: unknown;
}

export interface ImageParams {
  readonly count: number;
  /** Empty for models that accept none. */
  readonly prompt: string;
  /** A value for each choice of the model; the price depends on them. */
  readonly choices: MediaChoices;
  /** The choices, and the values of the forwarded fields that are set, under the gateway's names. */
  readonly parameters: MediaParameters;
}

const MAX_PROMPT_LENGTH = 32_000;
const CHOICE_FIELDS: ChoiceFields = { size: ['aspect_ratio', 'size'] };
/** Fields in addition to choices. A model receives those that it supports. */
const FORWARDED_FIELDS = [
  'negative_prompt',
  'output_format',
  'output_compression',
  'background',
  'moderation',
  'seed',
  'user',
] as const;

/** @throws InvalidRequestError 400 that names the field */
export function parseImageRequest(body: ImageBody, model: MediaModel): ImageParams {
  const choices = parseChoices(body, model, CHOICE_FIELDS);
  return {
    count: parseImageCount(body, model),
    prompt: acceptsPrompt(model) ? parsePrompt(body, model, MAX_PROMPT_LENGTH) : '',
    choices,
    parameters: parseMediaParameters(body, FORWARDED_FIELDS, choices),
  };
}

function acceptsPrompt({ endpoints }: Pick<MediaModel, 'endpoints'>): boolean {
  return endpoints.some(({ parameters }) => parameters.includes('prompt'));
}

/**
 * Returns the number of requested images. Models that return a single image, such as upscalers, ignore the number in
 * the request.
 */
function parseImageCount(body: ImageBody, { id, maxImages = 1 }: MediaModel): number {
  const field = (body.n ?? undefined) === undefined ? 'num_images' : 'n';
  const count = body[field] ?? 1;
  if (maxImages === 1) return 1;
  if (count > maxImages) throw new InvalidRequestError(400, `${field} must be at most ${maxImages} for ${id}`, field);
  return count;
}
