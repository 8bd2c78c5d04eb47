import { Allow, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import type { VideoBody } from '#application';
import { IsModelId } from '../../edge/validation/validation.ts';
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

/** The query parameters of the signed URL of a video's status. */
export class StatusQuery {
  @Field({ type: 'string', description: 'When the URL expires, in Unix seconds' }, false)
  exp?: string;

  @Field({ type: 'string', description: 'The signature of the URL' }, false)
  sig?: string;
}
