import { IsArray, IsBoolean, IsIn, IsInt, IsNumber, IsObject, IsOptional, IsString, Max, Min } from 'class-validator';
import type { ResponsesBody } from '#application';
import { type JsonObject } from '#kernel';
import { IsModelList } from '../edge/validation/model-list.ts';
import { IsModelId, IsNumberBetween, IsPositiveInteger, Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';

/** Maximum number of input items on a page. */
const MAX_ITEMS = 100;

// The validation rules of a field run from the last to the first, so the rule for its type comes last.
export class ResponsesInput implements ResponsesBody {
  [field: string]: unknown;

  @IsModelId('The id of a model')
  model!: string;

  @IsModelList()
  models?: readonly string[] | null;

  @Field({
    type: ['string', 'array'],
    description: 'A text, or the items of a conversation',
    minLength: 1,
    minItems: 1,
  })
  @Satisfies(isInput, 'input must be a non-empty string or a non-empty array of items')
  input!: string | readonly unknown[];

  @IsOptional()
  @IsString({ message: 'instructions must be a string' })
  instructions?: string | null;

  @IsOptional()
  @IsPositiveInteger()
  max_output_tokens?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 2)
  temperature?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 1)
  top_p?: number | null;

  @IsOptional()
  @IsNumber({}, { message: 'presence_penalty must be a number' })
  presence_penalty?: number | null;

  @IsOptional()
  @IsNumber({}, { message: 'frequency_penalty must be a number' })
  frequency_penalty?: number | null;

  @IsOptional()
  @IsArray({ message: 'tools must be an array' })
  tools?: readonly unknown[] | null;

  @IsOptional()
  @IsBoolean({ message: 'parallel_tool_calls must be a boolean' })
  parallel_tool_calls?: boolean | null;

  @Field({ type: 'object' })
  @IsOptional()
  @Satisfies(isReasoning, 'reasoning must be an object whose effort and summary are strings')
  reasoning?: JsonObject | null;

  @Field({ type: 'object' })
  @IsOptional()
  @Satisfies(isTextConfig, 'text must be an object whose verbosity is a string')
  text?: JsonObject | null;

  @IsOptional()
  @IsObject({ message: 'response_format must be an object' })
  response_format?: JsonObject | null;

  @IsOptional()
  @IsString({ message: 'previous_response_id must be a string' })
  previous_response_id?: string | null;

  @IsOptional()
  @IsBoolean({ message: 'store must be a boolean' })
  store?: boolean | null;

  @IsOptional()
  @IsObject({ message: 'metadata must be an object' })
  metadata?: JsonObject | null;

  @IsOptional()
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;

  @IsOptional()
  @IsString({ each: true, message: 'include must be an array of strings' })
  @IsArray({ message: 'include must be an array of strings' })
  include?: readonly string[] | null;

  @IsOptional()
  @Min(0, { message: 'top_logprobs must be from 0 to 20' })
  @Max(20, { message: 'top_logprobs must be from 0 to 20' })
  @IsInt({ message: 'top_logprobs must be an integer' })
  top_logprobs?: number | null;

  @IsOptional()
  @IsIn(['auto', 'disabled'], { message: 'truncation must be "auto" or "disabled"' })
  truncation?: string | null;

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

/** A request about a conversation. `input` is optional, because the request may continue a stored response. */
export class ConversationInput extends ResponsesInput {}
IsOptional()(ConversationInput.prototype, 'input');

export class InputItemsQuery {
  @Field({ description: 'The id of the last item of the previous page' })
  @IsOptional()
  @IsString({ message: 'after must be a string' })
  after?: string;

  @Field({ type: 'integer', minimum: 1, maximum: MAX_ITEMS, default: 20 })
  @IsOptional()
  @Satisfies(isLimit, `limit must be an integer from 1 to ${MAX_ITEMS}`)
  limit?: string;

  @IsOptional()
  @IsIn(['asc', 'desc'], { message: 'order must be "asc" or "desc"' })
  order?: 'asc' | 'desc';
}

function isLimit(value: unknown): boolean {
  return typeof value === 'string' && /^[1-9]\d{0,2}$/.test(value) && Number(value) <= MAX_ITEMS;
}

function isInput(value: unknown): boolean {
  return (typeof value === 'string' || Array.isArray(value)) && value.length > 0;
}

function isReasoning(value: unknown): boolean {
  return isObjectWith(value, 'effort') && isObjectWith(value, 'summary');
}

function isTextConfig(value: unknown): boolean {
  return isObjectWith(value, 'verbosity');
}

/** Checks for an object whose field is a string, null or missing. */
function isObjectWith(value: unknown, field: string): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const fieldValue = (value as JsonObject)[field] ?? '';
  return typeof fieldValue === 'string';
}
