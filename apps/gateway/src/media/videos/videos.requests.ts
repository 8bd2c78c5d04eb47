import { Allow, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import type { VideoBody } from '#application';
import { IsModelId } from '../../edge/validation/validation.ts';
import { Field } from '../../openapi/request-schema.ts';

const MAX_VALUE_LENGTH = 32;
const MAX_PROMPT_LENGTH = 100_000;
const MAX_SEED = 2_147_483_647;

// Rules are checked from the last one up. What may be chosen depends on the model, and is checked with it.
export class VideoRequest implements VideoBody {
  [field: string]: unknown;

  @IsModelId('The id of a video model')
  model!: string;

  @Field({ type: 'string', description: 'What is to be seen' }, true)
  @IsOptional()
  @MaxLength(MAX_PROMPT_LENGTH, { message: `prompt may have at most ${MAX_PROMPT_LENGTH} characters` })
  @IsString({ message: 'prompt must be a string' })
  prompt?: string | null;

  @Field({
    description: 'A ratio that the model has, such as `16:9`, which is the default. Pixels stand for the nearest.',
  })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `aspect_ratio may have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'aspect_ratio must be a string' })
  aspect_ratio?: string | null;

  @Field({ description: 'The same as `aspect_ratio`, which counts where both are there' })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `size may have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'size must be a string' })
  size?: string | null;

  @Field({
    type: ['string', 'number', 'null'],
    description: 'Seconds that the model has, such as `5`, `"5"` or `"5s"`; the first of them by default',
  })
  @IsOptional()
  @Allow()
  duration?: string | number | null;

  @Field({ description: 'A resolution that the model has, such as `1080p`' })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `quality may have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'quality must be a string' })
  quality?: string | null;

  @Field({ description: 'The same as `quality`, which counts where both are there' })
  @IsOptional()
  @MaxLength(MAX_VALUE_LENGTH, { message: `resolution may have at most ${MAX_VALUE_LENGTH} characters` })
  @IsString({ message: 'resolution must be a string' })
  resolution?: string | null;

  @Field({
    description: 'The picture that models with `-i2v` set in motion: an http(s) address, or a data URI in base64',
  })
  @IsOptional()
  @IsString({ message: 'image_url must be a string' })
  image_url?: string | null;

  @IsOptional()
  @MaxLength(MAX_PROMPT_LENGTH, { message: `negative_prompt may have at most ${MAX_PROMPT_LENGTH} characters` })
  @IsString({ message: 'negative_prompt must be a string' })
  negative_prompt?: string | null;

  @IsOptional()
  @Max(MAX_SEED, { message: `seed must be at most ${MAX_SEED}` })
  @Min(0, { message: 'seed must be at least 0' })
  @IsInt({ message: 'seed must be a whole number' })
  seed?: number | null;
}

/** What the signed address of a video's status carries beside its path. */
export class StatusQuery {
  @Field({ type: 'string', description: 'When the address ends, in seconds since 1970' }, false)
  exp?: string;

  @Field({ type: 'string', description: 'The signature' }, false)
  sig?: string;
}
