import { IsOptional, IsString } from 'class-validator';
import { MODEL_TYPES } from '#catalogue';
import { Field } from '../openapi/request-schema.ts';
import { BOOLEAN } from '../openapi/schemas.ts';

export class ModelsQuery {
  @Field({ description: `Types (${MODEL_TYPES.join(', ')}), divided by commas, or all; chat models unless it is sent` })
  @IsOptional()
  @IsString()
  type?: string;

  @Field({ ...BOOLEAN, description: 'Only those that many use' })
  popular?: unknown;
}
