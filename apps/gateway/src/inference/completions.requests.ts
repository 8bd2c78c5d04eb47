import { Allow, IsBoolean, IsOptional, IsString } from 'class-validator';
import type { CompletionBody } from '#application';
import { MatchesSchemaIfPresent } from '../edge/validation/matches-schema.ts';
import { IsModelList } from '../edge/validation/model-list.ts';
import { IsNumberBetween, IsPositiveInteger } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { MAX_CHOICES } from './chat.requests.ts';
import { LogitBiasSchema } from './chat.schemas.ts';

// The validation rules of a field run from the last to the first, so the rule for its type comes last.
export class CompletionRequest implements CompletionBody {
  [field: string]: unknown;

  @Field({ description: 'The id of a chat model' })
  @IsString({ message: 'model must be a string' })
  model!: string;

  @IsModelList()
  models?: readonly string[] | null;

  @Field({ type: ['string', 'array'], description: 'A text, or an array of one text', minLength: 1 })
  @Allow()
  prompt!: unknown;

  @IsOptional()
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;

  @IsOptional()
  @IsPositiveInteger()
  max_tokens?: number | null;

  @IsOptional()
  @IsPositiveInteger(MAX_CHOICES)
  n?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 2)
  temperature?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 1)
  top_p?: number | null;

  @MatchesSchemaIfPresent(LogitBiasSchema)
  logit_bias?: unknown;
}
