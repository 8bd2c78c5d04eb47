import { IsBoolean, IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator';
import type { ImageBody } from '#application';
import { IsModelId, IsPositiveInteger } from '../../edge/validation/validation.ts';
import { Field } from '../../openapi/request-schema.ts';

const MAX_IMAGES = 4;
const FORMATS = ['png', 'jpeg', 'webp'];
const RESPONSE_FORMATS = ['url', 'b64_json'];

// Rules are checked from the last one up. What a model lets choose is checked with it.
class ImageFields implements ImageBody {
  [field: string]: unknown;

  @IsModelId('The id of an image model')
  model!: string;

  @IsOptional()
  @Field({ description: 'What is to be seen; upscalers and background removers need none' })
  @IsString({ message: 'prompt must be a string' })
  prompt?: string | null;

  @IsOptional()
  @Field({ description: 'How many images' })
  @IsPositiveInteger(MAX_IMAGES)
  n?: number | null;

  @IsOptional()
  @Field({ description: 'The same as n' })
  @IsPositiveInteger(MAX_IMAGES)
  num_images?: number | null;

  @IsOptional()
  @Field({
    description: 'One of the ratios of the model, such as 16:9; of pixels, such as 1024x1024, the nearest ratio',
  })
  @IsString({ message: 'size must be a string' })
  size?: string | null;

  @IsOptional()
  @Field({ description: 'The same as size' })
  @IsString({ message: 'aspect_ratio must be a string' })
  aspect_ratio?: string | null;

  @IsOptional()
  @Field({ description: 'One of the qualities of the model' })
  @IsString({ message: 'quality must be a string' })
  quality?: string | null;

  @IsOptional()
  @Field({ description: 'One of the resolutions of the model' })
  @IsString({ message: 'resolution must be a string' })
  resolution?: string | null;

  @IsOptional()
  @Field({ description: 'What is not to be seen' })
  @IsString({ message: 'negative_prompt must be a string' })
  negative_prompt?: string | null;

  @IsOptional()
  @IsIn(FORMATS, { message: `output_format must be one of ${FORMATS.join(', ')}` })
  output_format?: string | null;

  @IsOptional()
  @Max(100, { message: 'output_compression must be at most 100' })
  @Min(0, { message: 'output_compression must be at least 0' })
  @IsInt({ message: 'output_compression must be a whole number' })
  output_compression?: number | null;

  @IsOptional()
  @IsInt({ message: 'seed must be a whole number' })
  seed?: number | null;

  @IsOptional()
  @IsString({ message: 'background must be a string' })
  background?: string | null;

  @IsOptional()
  @IsString({ message: 'moderation must be a string' })
  moderation?: string | null;

  @IsOptional()
  @IsString({ message: 'user must be a string' })
  user?: string | null;

  @IsOptional()
  @Field({
    description:
      'true: an event for each image, when all are made, with the image in base64; parts of images are not sent',
  })
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;
}

export class ImageGenerationRequest extends ImageFields {
  @IsOptional()
  @Field({ description: 'A picture to begin with: an http(s) address, or a data URI in base64' })
  @IsString({ message: 'image_url must be a string' })
  image_url?: string | null;

  @IsOptional()
  @Field({ description: 'url by default: a signed address that lasts 24 hours' })
  @IsIn(RESPONSE_FORMATS, { message: `response_format must be one of ${RESPONSE_FORMATS.join(', ')}` })
  response_format?: string | null;
}

export class ImageEditRequest extends ImageFields {
  @IsOptional()
  @Field({ description: 'b64_json by default' })
  @IsIn(RESPONSE_FORMATS, { message: `response_format must be one of ${RESPONSE_FORMATS.join(', ')}` })
  response_format?: string | null;
}
