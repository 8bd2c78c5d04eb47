import { IsOptional, IsString } from 'class-validator';
import { MODEL_TYPES } from '#catalogue';
import { IsBooleanFlag } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { array } from '../openapi/schemas.ts';
import { LIFECYCLES, MAX_PAGE_SIZE, PAGE_SIZE } from './anthropic-models.ts';

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

  @Field({
    type: 'integer',
    minimum: 1,
    maximum: MAX_PAGE_SIZE,
    description: `Models per page, ${PAGE_SIZE} by default; only with the header anthropic-version, like the fields below`,
  })
  limit?: unknown;

  @Field({ type: 'string', description: 'The page after the model with this id' })
  after_id?: unknown;

  @Field({ type: 'string', description: 'The page before the model with this id' })
  before_id?: unknown;

  @Field({
    ...array({ type: 'string', enum: LIFECYCLES }),
    description: 'Only models in these stages; active and deprecated by default',
  })
  'lifecycle[]'?: unknown;
}
