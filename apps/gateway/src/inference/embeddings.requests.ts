import { Allow, IsIn, IsOptional, IsString } from 'class-validator';
import type { EmbeddingRequestBody } from '#application';
import { IsModelId, IsPositiveInteger } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { EmbeddingInputSchema } from './embeddings.schemas.ts';

// The limits of `input` depend on the model, so `input` is validated together with the model.
export class EmbeddingRequest implements EmbeddingRequestBody {
  [field: string]: unknown;

  @IsModelId('The id of an embedding model')
  model!: string;

  @Field(EmbeddingInputSchema)
  @Allow()
  input!: unknown;

  @IsOptional()
  @IsIn(['float', 'base64'], { message: 'encoding_format must be float or base64' })
  encoding_format?: string | null;

  @IsOptional()
  @IsPositiveInteger()
  dimensions?: number | null;

  @IsOptional()
  @IsString({ message: 'user must be a string' })
  user?: string | null;
}
