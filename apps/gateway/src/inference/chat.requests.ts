import { IsBoolean, IsOptional, IsString } from 'class-validator';
import type { ChatBody } from '#application';
import { Shaped, ShapedIfGiven } from '../edge/validation/schema-rules.ts';
import { Count, Fraction, ModelId } from '../edge/validation/validation.ts';
import { array, STRING } from '../openapi/schemas.ts';
import { MessageSchema, ResponseFormatSchema, ToolChoiceSchema, ToolSchema } from './chat.schemas.ts';

export const MAX_CHOICES = 128;

// Rules are checked from the last one up: the type stands next to its field.
export class ChatRequest implements ChatBody {
  [field: string]: unknown;

  @ModelId('The id of a model')
  model!: string;

  @Shaped({ ...array(MessageSchema), minItems: 1 })
  messages!: readonly Readonly<Record<string, unknown>>[];

  @IsOptional()
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;

  @IsOptional()
  @Count()
  max_tokens?: number | null;

  @IsOptional()
  @Count()
  max_completion_tokens?: number | null;

  @IsOptional()
  @Count(MAX_CHOICES)
  n?: number | null;

  @IsOptional()
  @Fraction(0, 2)
  temperature?: number | null;

  @IsOptional()
  @Fraction(0, 1)
  top_p?: number | null;

  @ShapedIfGiven(array(ToolSchema))
  tools?: readonly unknown[] | null;

  @ShapedIfGiven(ToolChoiceSchema)
  tool_choice?: unknown;

  @ShapedIfGiven(ResponseFormatSchema)
  response_format?: unknown;

  @ShapedIfGiven({ type: ['string', 'array'], items: STRING, description: 'Where to stop' })
  stop?: unknown;

  @ShapedIfGiven({ type: 'object', description: 'Tags, which go to the model’s vendor' })
  metadata?: unknown;

  @ShapedIfGiven({ type: 'object' })
  stream_options?: unknown;

  @ShapedIfGiven({ type: 'object' })
  logit_bias?: unknown;

  @IsOptional()
  @IsBoolean({ message: 'parallel_tool_calls must be a boolean' })
  parallel_tool_calls?: boolean | null;

  @IsOptional()
  @IsString({ message: 'user must be a string' })
  user?: string | null;
}
