import { IsArray, IsBoolean, IsObject, IsOptional } from 'class-validator';
import type { MessagesBody } from '#application';
import { type JsonObject } from '#kernel';
import { IsModelList } from '../edge/validation/model-list.ts';
import { IsModelId, IsNumberBetween, IsPositiveInteger, Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { array } from '../openapi/schemas.ts';
import { AnthropicTurnSchema } from './messages.schemas.ts';

// The validation rules of a field run from the last to the first, so the rule for its type comes last. Nested values
// other than roles and stop sequences are validated where they are read.
export class TokenCountRequest implements MessagesBody {
  [field: string]: unknown;

  @IsModelId('The id or an alias of a model')
  model!: string;

  @Field(array(AnthropicTurnSchema))
  @Satisfies(areMessages, 'messages must be a non-empty array of objects with a role')
  messages!: readonly unknown[];

  @Field({ type: ['string', 'array', 'null'], description: 'A text, or an array of text blocks' })
  @IsOptional()
  @Satisfies(isSystem, 'system must be a string or an array of text blocks')
  system?: string | readonly unknown[] | null;

  @IsOptional()
  @IsArray({ message: 'tools must be an array' })
  tools?: readonly unknown[] | null;

  @IsOptional()
  @IsObject({ message: 'tool_choice must be an object' })
  tool_choice?: JsonObject | null;

  @IsOptional()
  @IsObject({ message: 'thinking must be an object' })
  thinking?: JsonObject | null;

  @IsOptional()
  @IsObject({ message: 'output_config must be an object' })
  output_config?: JsonObject | null;

  @IsOptional()
  @IsObject({ message: 'cache_control must be an object' })
  cache_control?: JsonObject | null;
}

export class MessageRequest extends TokenCountRequest {
  @IsModelList()
  models?: readonly string[] | null;

  @Field({ description: 'The maximum number of output tokens, including thinking' })
  @IsPositiveInteger()
  max_tokens!: number;

  @IsOptional()
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;

  @Field({ ...array({ type: 'string' }) })
  @IsOptional()
  @Satisfies(areTexts, 'stop_sequences must be an array of non-empty strings')
  stop_sequences?: readonly string[] | null;

  @IsOptional()
  @IsNumberBetween(0, 1)
  temperature?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 1)
  top_p?: number | null;

  @IsOptional()
  @IsPositiveInteger()
  top_k?: number | null;

  @IsOptional()
  @IsObject({ message: 'metadata must be an object' })
  metadata?: JsonObject | null;

  @Field({ description: 'Stores the conversation under the id of the message, or continues a stored one' })
  @IsOptional()
  @IsObject({ message: 'thread must be an object' })
  thread?: JsonObject | null;
}

function areMessages(value: unknown): boolean {
  const isMessage = (message: unknown) => typeof (message as { role?: unknown } | null)?.role === 'string';
  return Array.isArray(value) && value.every(isMessage);
}

function isSystem(value: unknown): boolean {
  return typeof value === 'string' || Array.isArray(value);
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '');
}
