import { IsOptional, IsString } from 'class-validator';
import { RejectsLimits } from '../edge/validation/unknown-fields.ts';
import { Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { CREDIT_ID, nullable } from '../openapi/schemas.ts';

@RejectsLimits()
export class NewTopup {
  @Field({ type: 'number', exclusiveMinimum: 0 })
  @Satisfies(
    (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
    'amount must be a number above 0',
  )
  amount!: number;

  @Field({ description: 'A currency of the payment method, in upper or lower case' })
  @IsString({ message: 'currency must be a string' })
  currency!: string;

  @Field(nullable(CREDIT_ID))
  credit_id?: unknown;
}

@RejectsLimits()
export class NewCardSession {
  @Field({ type: 'number', exclusiveMinimum: 0 })
  @Satisfies(
    (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
    'amount must be a number above 0',
  )
  amount!: number;

  @Field({ description: 'USD, which is the only supported currency and the default' })
  @IsOptional()
  @IsString({ message: 'currency must be a string' })
  currency?: string | null;

  @Field(nullable(CREDIT_ID))
  credit_id?: unknown;
}
