import { RejectsLimits } from '../edge/validation/unknown-fields.ts';
import { Field } from '../openapi/request-schema.ts';
import { CREDIT_ID, nullable } from '../openapi/schemas.ts';

/** An account has no settings; its API keys do. */
@RejectsLimits()
export class NewAccount {}

@RejectsLimits()
export class BalanceRequest {
  @Field(nullable(CREDIT_ID))
  credit_id?: unknown;
}
