import { IsIn, IsNumber, IsOptional, IsString, Length, Max, Min, ValidateIf } from 'class-validator';
import type { KeyFields } from '#application';
import { MAX_KEY_NAME_LENGTH, parseInstant, type ResetPeriod } from '#domain';
import { money } from '#kernel';
import { IsBooleanFlag, isStorableText, Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { dateOrTime, text } from '../openapi/schemas.ts';

const RESET_PERIODS = ['daily', 'weekly', 'monthly'] as const;

/** Far above any useful limit, and within the columns of the read models, which have 38 digits of pico-USD. */
const MAX_LIMIT_USD = 1_000_000_000;

const NAME = text('The name of the key, unique among the active keys of the account');

// class-validator checks the rules of a field from the last to the first, so the rule for the type comes last.
export class KeyLimits {
  @Field({ description: 'Spending limit per period, or in total without a period' })
  @IsOptional()
  @Max(MAX_LIMIT_USD, { message: `usage_limit_usd must be at most ${MAX_LIMIT_USD}` })
  @Min(0.01, { message: 'usage_limit_usd must be at least 0.01' })
  @IsNumber({ allowNaN: false, allowInfinity: false }, { message: 'usage_limit_usd must be a number or null' })
  usage_limit_usd?: number | null;

  @Field({ description: 'How often the counted spending is reset; requires a limit' })
  @IsOptional()
  @IsIn(RESET_PERIODS, { message: `reset_period must be one of ${RESET_PERIODS.join(', ')}, or null` })
  reset_period?: ResetPeriod | null;

  @Field(dateOrTime('When the key expires'))
  @IsOptional()
  @Satisfies((value) => parseInstant(value) !== undefined, 'expire_at must be an ISO 8601 date or date-time, or null')
  expire_at?: string | null;
}

export class NewKey extends KeyLimits {
  @Field(NAME)
  @Length(1, MAX_KEY_NAME_LENGTH, { message: `name must have 1 to ${MAX_KEY_NAME_LENGTH} characters` })
  @Satisfies(isStorableText, 'name must not contain NUL characters or unpaired surrogates')
  @IsString({ message: 'name must be a string' })
  name!: string;
}

export class KeyChanges extends KeyLimits {
  @Field(NAME)
  @ValidateIf((changes) => changes.name !== undefined)
  @Length(1, MAX_KEY_NAME_LENGTH, { message: `name must have 1 to ${MAX_KEY_NAME_LENGTH} characters` })
  @Satisfies(isStorableText, 'name must not contain NUL characters or unpaired surrogates')
  @IsString({ message: 'name must be a string' })
  name?: string;
}

export class KeyQuery {
  @IsBooleanFlag('Include revoked keys in a list')
  include_disabled?: string;

  @IsBooleanFlag('Include the secrets')
  show_key?: string;
}

/** Converts a request body to key fields. An undefined field is omitted; null stays null, which removes the value. */
export function toKeyFields({ name, usage_limit_usd, reset_period, expire_at }: KeyChanges): Partial<KeyFields> {
  return {
    ...(name === undefined ? {} : { name }),
    ...(usage_limit_usd === undefined
      ? {}
      : { limit: usage_limit_usd === null ? null : money.roundToPicoUsd(usage_limit_usd) }),
    ...(reset_period === undefined ? {} : { resetPeriod: reset_period }),
    ...(expire_at === undefined ? {} : { expireAt: parseInstant(expire_at) ?? null }),
  };
}
