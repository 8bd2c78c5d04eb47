import { Allow, IsIn, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import type { VideoBody } from '#application';
import { IsModelId, Satisfies } from '../../edge/validation/validation.ts';
import { Field } from '../../openapi/request-schema.ts';

const MAX_VALUE_LENGTH = 32;
const MAX_PROMPT_LENGTH = 100_000;
const MAX_SEED = 2_147_483_647;

// The validation rules of a field run from the last to the first. Values whose limits depend on the model are validated
// together with the model.
export class VideoRequest implements VideoBody {
  [field: string]: unknown;

  @IsModelId('The id of a video model')
  model!: string;

  @Field({ type: 'string', description: 'A description of the video' }, true)
  @IsOptional()
  @MaxLength(MAX_PROMPT_LENGTH, { message: `prompt must have at most ${MAX_PROMPT_LENGTH} characters` })
  @IsString({ message: 'prompt must be a string' })
  prompt?: string | null;

  @Field({
    description:
      'An aspect ratio of the model, such as the default `16:9`. A size in pixels selects the nearest ratio.',
  })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `aspect_ratio must have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'aspect_ratio must be a string' })
  aspect_ratio?: string | null;

  @Field({ description: 'The same as `aspect_ratio`, which takes precedence' })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `size must have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'size must be a string' })
  size?: string | null;

  @Field({
    type: ['string', 'number', 'null'],
    description: 'A duration of the model in seconds, such as `5`, `"5"` or `"5s"`; by default its first duration',
  })
  @IsOptional()
  @Allow()
  duration?: string | number | null;

  @Field({ type: ['string', 'number', 'null'], description: 'The same as `duration`, which takes precedence' })
  @IsOptional()
  @Allow()
  seconds?: string | number | null;

  @Field({ description: 'A resolution of the model, such as `1080p`' })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `quality must have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'quality must be a string' })
  quality?: string | null;

  @Field({
    description: 'The same as `quality`. If both are sent, the one that the model lists takes precedence.',
  })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `resolution must have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'resolution must be a string' })
  resolution?: string | null;

  @Field({
    description:
      'The image to animate, required by models whose id ends with `-i2v`: an http(s) URL, or a data URI in base64. ' +
      'Models without the capability `image_to_video` respond to it with 400.',
  })
  @IsOptional()
  @IsString({ message: 'image_url must be a string' })
  image_url?: string | null;

  @Field({
    type: ['object', 'null'],
    description: 'The image to animate, as OpenAI’s clients send it: an object with `image_url`, or the file of a form',
  })
  @IsOptional()
  @Satisfies((value) => typeof value === 'object', 'input_reference must be an object with image_url')
  input_reference?: object | null;

  @Field({
    type: ['array', 'null'],
    description:
      'The image to animate, as OpenRouter’s clients send it: a list of one object with `image_url.url` and the ' +
      '`frame_type` `first_frame`',
  })
  @IsOptional()
  @Allow()
  frame_images?: unknown;

  @IsOptional()
  @MaxLength(MAX_PROMPT_LENGTH, { message: `negative_prompt must have at most ${MAX_PROMPT_LENGTH} characters` })
  @IsString({ message: 'negative_prompt must be a string' })
  negative_prompt?: string | null;

  @IsOptional()
  @Max(MAX_SEED, { message: `seed must be at most ${MAX_SEED}` })
  @Min(0, { message: 'seed must be at least 0' })
  @IsInt({ message: 'seed must be an integer' })
  seed?: number | null;
}

const MAX_PAGE_SIZE = 100;
const ORDERS = ['asc', 'desc'];

/** The query parameters of a page of videos, as OpenAI defines them. */
export class VideosQuery {
  @Field({ type: 'integer', description: `The number of videos, at most ${MAX_PAGE_SIZE}; 20 by default` })
  @IsOptional()
  @Satisfies(isPageSize, `limit must be from 1 to ${MAX_PAGE_SIZE}`)
  limit?: string;

  @Field({ description: 'The id of the last video of the page before' })
  @IsOptional()
  @IsString({ message: 'after must be a string' })
  after?: string;

  @Field({ description: 'By the time of the request; `desc` by default' })
  @IsOptional()
  @IsIn(ORDERS, { message: `order must be one of ${ORDERS.join(', ')}` })
  order?: 'asc' | 'desc';
}

function isPageSize(limit: unknown): boolean {
  return /^\d{1,3}$/.test(String(limit)) && Number(limit) >= 1 && Number(limit) <= MAX_PAGE_SIZE;
}

/** Selects what is downloaded of a video. */
export class VideoContentQuery {
  @Field({ description: 'Only `video`, the file itself, is available' })
  @IsOptional()
  @IsIn(['video'], { message: 'variant must be video: there are no thumbnails and spritesheets' })
  variant?: string;

  @Field({ type: 'integer', description: 'The number of the file, which is always 0' })
  @IsOptional()
  @IsIn(['0'], { message: 'index must be 0: a video has one file' })
  index?: string;
}

/** The query parameters of the signed URL of a video's status. */
export class StatusQuery {
  @Field({ type: 'string', description: 'When the URL expires, in Unix seconds' }, false)
  exp?: string;

  @Field({ type: 'string', description: 'The signature of the URL' }, false)
  sig?: string;
}
