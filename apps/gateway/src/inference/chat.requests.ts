import { IsArray, IsBoolean, IsOptional, IsString } from 'class-validator';
import type { ChatBody } from '#application';
import { Count, Fraction, Satisfies } from '../edge/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { array } from '../openapi/schemas.ts';
import { MessageSchema } from './chat.schemas.ts';

const MAX_CHOICES = 128;

// Rules are checked from the last one up: the type stands next to its field.
export class ChatRequest implements ChatBody {
  [field: string]: unknown;

  @Field({ description: 'The id of a model' })
  @IsString({ message: 'model must be a string' })
  model!: string;

  @Field({ ...array(MessageSchema), minItems: 1 })
  @Satisfies(areMessages, 'messages must be a non-empty array of objects with a role')
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

  @IsOptional()
  @IsArray({ message: 'tools must be an array' })
  tools?: readonly unknown[] | null;
}

function areMessages(value: unknown): boolean {
  const isMessage = (each: unknown) =>
    typeof each === 'object' && each !== null && typeof (each as { role?: unknown }).role === 'string';
  return Array.isArray(value) && value.length > 0 && value.every(isMessage);
}
