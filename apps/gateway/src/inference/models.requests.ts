import { IsOptional, IsString } from 'class-validator';
import { MODEL_TYPES } from '#catalogue';
import { IsBooleanFlag } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';

export class ModelsQuery {
  @Field({
    description: `Comma-separated types (${MODEL_TYPES.join(', ')}), or all; chat by default. Private models are included only in all.`,
  })
  @IsOptional()
  @IsString()
  type?: string;

  @IsBooleanFlag('Only popular models')
  popular?: string;

  @IsBooleanFlag('Also models that have retired, which are marked by an `expiration_date` that has come')
  include_retired?: string;
}
