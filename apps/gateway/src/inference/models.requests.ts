import { IsOptional, IsString } from 'class-validator';
import { MODEL_TYPES } from '#catalogue';
import { IsBooleanFlag } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';

export class ModelsQuery {
  @Field({
    description: `Comma-separated types (${MODEL_TYPES.join(', ')}), or all; default: chat. Private models, which requests are encrypted for, are in all alone`,
  })
  @IsOptional()
  @IsString()
  type?: string;

  @IsBooleanFlag('Only popular models')
  popular?: string;
}
