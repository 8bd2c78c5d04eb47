import { Field } from '../openapi/request-schema.ts';
import { CREDIT_ID, nullable } from '../openapi/schemas.ts';

export class BalanceRequest {
  @Field(nullable(CREDIT_ID))
  credit_id?: unknown;
}
