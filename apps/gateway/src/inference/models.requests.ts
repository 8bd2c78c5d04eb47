import { IsOptional, IsString } from 'class-validator';
import { MODEL_TYPES } from '#catalogue';
import { Field } from '../openapi/request-schema.ts';
import { BOOLEAN } from '../openapi/schemas.ts';

export class ModelsQuery {
  @Field({ description: `Comma-separated types (${MODEL_TYPES.join(', ')}), or all; default: chat` })
  @IsOptional()
  @IsString()
  type?: string;

  @Field({ ...BOOLEAN, description: 'Only popular models' })
  popular?: unknown;
}
