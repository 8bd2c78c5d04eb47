import { IsBoolean, IsOptional, IsString } from 'class-validator';
import type { ChatBody } from '#application';
import { MatchesSchema, MatchesSchemaIfPresent } from '../edge/validation/matches-schema.ts';
import { IsModelList } from '../edge/validation/model-list.ts';
import { IsModelId, IsNumberBetween, IsPositiveInteger } from '../edge/validation/validation.ts';
import { array, STRING } from '../openapi/schemas.ts';
import { LogitBiasSchema, MessageSchema, ResponseFormatSchema, ToolChoiceSchema, ToolSchema } from './chat.schemas.ts';

export const MAX_CHOICES = 128;

// The validation rules of a field run from the last to the first, so the rule for its type comes last.
export class ChatRequest implements ChatBody {
  [field: string]: unknown;

  @IsModelId('The id of a model')
  model!: string;

  @IsModelList()
  models?: readonly string[] | null;

  @MatchesSchema({ ...array(MessageSchema), minItems: 1 })
  messages!: readonly Readonly<Record<string, unknown>>[];

  @IsOptional()
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;

  @IsOptional()
  @IsPositiveInteger()
  max_tokens?: number | null;

  @IsOptional()
  @IsPositiveInteger()
  max_completion_tokens?: number | null;

  @IsOptional()
  @IsPositiveInteger(MAX_CHOICES)
  n?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 2)
  temperature?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 1)
  top_p?: number | null;

  @MatchesSchemaIfPresent(array(ToolSchema))
  tools?: readonly unknown[] | null;

  @MatchesSchemaIfPresent(ToolChoiceSchema)
  tool_choice?: unknown;

  @MatchesSchemaIfPresent(ResponseFormatSchema)
  response_format?: unknown;

  @MatchesSchemaIfPresent({ type: ['string', 'array'], items: STRING, description: 'Texts at which the model stops' })
  stop?: unknown;

  @MatchesSchemaIfPresent({ type: 'object', description: 'Tags, which are forwarded to the provider of the model' })
  metadata?: unknown;

  @MatchesSchemaIfPresent({ type: 'object' })
  stream_options?: unknown;

  @MatchesSchemaIfPresent(LogitBiasSchema)
  logit_bias?: unknown;

  @IsOptional()
  @IsBoolean({ message: 'parallel_tool_calls must be a boolean' })
  parallel_tool_calls?: boolean | null;

  @IsOptional()
  @IsString({ message: 'user must be a string' })
  user?: string | null;

  @IsOptional()
  @IsString({ message: 'safety_identifier must be a string' })
  safety_identifier?: string | null;

  @IsOptional()
  @IsString({ message: 'prompt_cache_key must be a string' })
  prompt_cache_key?: string | null;
}
