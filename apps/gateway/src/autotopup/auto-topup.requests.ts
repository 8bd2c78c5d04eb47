import { IsNumber, IsOptional, IsString, Max, Min } from 'class-validator';
import { MIN_AUTO_TOPUP_THRESHOLD_USD } from '#application';
import { RejectsLimits } from '../edge/validation/unknown-fields.ts';
import { Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { CREDIT_ID, nullable } from '../openapi/schemas.ts';

export const DEFAULT_USD = 10;
/** Far above any useful threshold. */
const MAX_THRESHOLD_USD = 1_000_000;

const isAmount = (value: unknown) => typeof value === 'number' && Number.isFinite(value) && value > 0;

// The last rule of a field is checked first: decorators run from the last to the first, and register the rules.
@RejectsLimits()
export class NewWallet {
  @Field({ description: 'Connection string of a wallet that can pay invoices (pay_invoice): nostr+walletconnect://…' })
  @IsString({ message: 'nwc_url must be a string' })
  nwc_url!: string;

  @Field({ description: `Balance in USD below which the account is topped up; ${DEFAULT_USD} by default` })
  @IsOptional()
  @Max(MAX_THRESHOLD_USD, { message: `threshold_usd must be at most ${MAX_THRESHOLD_USD}` })
  @Min(MIN_AUTO_TOPUP_THRESHOLD_USD, { message: `threshold_usd must be at least ${MIN_AUTO_TOPUP_THRESHOLD_USD}` })
  @IsNumber({ allowNaN: false, allowInfinity: false }, { message: 'threshold_usd must be a number' })
  threshold_usd?: number | null;

  @Field({
    type: ['number', 'null'],
    exclusiveMinimum: 0,
    description: `Amount of each top-up in USD; ${DEFAULT_USD} by default`,
  })
  @IsOptional()
  @Satisfies(isAmount, 'topup_amount_usd must be a number above 0')
  topup_amount_usd?: number | null;

  @Field(nullable(CREDIT_ID))
  credit_id?: unknown;
}
