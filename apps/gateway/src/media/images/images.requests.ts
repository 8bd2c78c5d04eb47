import { IsBoolean, IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator';
import type { ImageBody } from '#application';
import { IsModelId, IsPositiveInteger } from '../../edge/validation/validation.ts';
import { Field } from '../../openapi/request-schema.ts';

const MAX_IMAGES = 4;
const FORMATS = ['png', 'jpeg', 'webp'];
const RESPONSE_FORMATS = ['url', 'b64_json'];

// The validation rules of a field run from the last to the first. Values whose limits depend on the model are validated
// together with the model.
class ImageFields implements ImageBody {
  [field: string]: unknown;

  @IsModelId('The id of an image model')
  model!: string;

  @IsOptional()
  @Field({ description: 'A description of the image; optional for upscalers and background removers' })
  @IsString({ message: 'prompt must be a string' })
  prompt?: string | null;

  @IsOptional()
  @Field({ description: 'The number of images' })
  @IsPositiveInteger(MAX_IMAGES)
  n?: number | null;

  @IsOptional()
  @Field({ description: 'The same as `n`, which takes precedence' })
  @IsPositiveInteger(MAX_IMAGES)
  num_images?: number | null;

  @IsOptional()
  @Field({
    description:
      'An aspect ratio of the model, such as 16:9. A size in pixels, such as 1024x1024, selects the nearest ratio.',
  })
  @IsString({ message: 'size must be a string' })
  size?: string | null;

  @IsOptional()
  @Field({ description: 'The same as `size`, over which it takes precedence' })
  @IsString({ message: 'aspect_ratio must be a string' })
  aspect_ratio?: string | null;

  @IsOptional()
  @Field({ description: 'A quality of the model' })
  @IsString({ message: 'quality must be a string' })
  quality?: string | null;

  @IsOptional()
  @Field({ description: 'A resolution of the model' })
  @IsString({ message: 'resolution must be a string' })
  resolution?: string | null;

  @IsOptional()
  @Field({ description: 'A description of what the image must not show' })
  @IsString({ message: 'negative_prompt must be a string' })
  negative_prompt?: string | null;

  @IsOptional()
  @IsIn(FORMATS, { message: `output_format must be one of ${FORMATS.join(', ')}` })
  output_format?: string | null;

  @IsOptional()
  @Max(100, { message: 'output_compression must be at most 100' })
  @Min(0, { message: 'output_compression must be at least 0' })
  @IsInt({ message: 'output_compression must be an integer' })
  output_compression?: number | null;

  @IsOptional()
  @IsInt({ message: 'seed must be an integer' })
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
      'If true, an SSE event with the image in base64 is sent for each image once all are generated; partial images are not sent',
  })
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;
}

export class ImageGenerationRequest extends ImageFields {
  @IsOptional()
  @Field({ description: 'The image to start from: an http(s) URL, or a data URI in base64' })
  @IsString({ message: 'image_url must be a string' })
  image_url?: string | null;

  @IsOptional()
  @Field({
    description:
      '`url` by default: a signed URL that expires after 24 hours. If the field is missing, models of OpenAI return both.',
  })
  @IsIn(RESPONSE_FORMATS, { message: `response_format must be one of ${RESPONSE_FORMATS.join(', ')}` })
  response_format?: string | null;
}

export class ImageEditRequest extends ImageFields {
  @IsOptional()
  @Field({ description: '`b64_json` by default' })
  @IsIn(RESPONSE_FORMATS, { message: `response_format must be one of ${RESPONSE_FORMATS.join(', ')}` })
  response_format?: string | null;
}
