import { IsBoolean, IsIn, IsInt, IsNumber, IsOptional, IsString, Length, Max, Min, ValidateIf } from 'class-validator';
import type { KeyFields } from '#application';
import {
  MAX_DEDUPE_SECONDS,
  MAX_KEY_MODELS,
  MAX_KEY_NAME_LENGTH,
  MAX_KEY_TAGS,
  parseInstant,
  RESET_PERIODS,
  type ResetPeriod,
} from '#domain';
import { isJsonObject, money } from '#kernel';
import { MatchesSchemaIfPresent } from '../edge/validation/matches-schema.ts';
import { RejectsUnknownFields } from '../edge/validation/unknown-fields.ts';
import { IsBooleanFlag, isStorableText, Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { dateOrTime, text } from '../openapi/schemas.ts';

/** The default as well: most accounts then get all keys at once. */
export const MAX_KEY_PAGE_SIZE = 100;

/** Far above any useful limit, and within the columns of the read models, which have 38 digits of pico-USD. */
const MAX_LIMIT_USD = 1_000_000_000;

const NAME = text('The name of the key, unique among the active keys of the account');

const MODELS = {
  type: ['array', 'null'],
  items: { type: 'string', minLength: 1 },
  maxItems: MAX_KEY_MODELS,
  description:
    'What the key permits: ids or aliases of models, ids of data lookups, and patterns such as "openai/*"; null permits everything',
};

/** The fields of the record that are not settings. Clients send back the record that they have read. */
const READ_ONLY_FIELDS = [
  '_id',
  'api_key',
  'current_period_usage_usd',
  'total_usage_all_time_usd',
  'reset_at',
  'created_at',
  'updated_at',
  'deleted_at',
];

const isTagObject = (value: unknown) =>
  isJsonObject(value) && Object.values(value).every((tag) => typeof tag === 'string');

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

  @MatchesSchemaIfPresent(MODELS)
  models?: string[] | null;

  @Field({ description: 'Whether all requests with the key are rejected' })
  @ValidateIf(({ blocked }) => blocked !== undefined)
  @IsBoolean({ message: 'blocked must be a boolean' })
  blocked?: boolean;

  @Field({
    type: ['object', 'null'],
    additionalProperties: { type: 'string' },
    maxProperties: MAX_KEY_TAGS,
    description: 'Tags, such as a cost centre',
  })
  @IsOptional()
  @Satisfies(isTagObject, 'metadata must be an object whose values are strings')
  metadata?: Record<string, string> | null;

  @Field({
    type: ['integer', 'null'],
    minimum: 1,
    maximum: MAX_DEDUPE_SECONDS,
    description:
      'For so many seconds, a request identical to one whose response is running or unread is the same request; null: never',
  })
  @IsOptional()
  @Max(MAX_DEDUPE_SECONDS, { message: `dedupe_seconds must be at most ${MAX_DEDUPE_SECONDS}` })
  @Min(1, { message: 'dedupe_seconds must be at least 1' })
  @IsInt({ message: 'dedupe_seconds must be an integer or null' })
  dedupe_seconds?: number | null;
}

@RejectsUnknownFields(READ_ONLY_FIELDS)
export class NewKey extends KeyLimits {
  @Field(NAME)
  @Length(1, MAX_KEY_NAME_LENGTH, { message: `name must have 1 to ${MAX_KEY_NAME_LENGTH} characters` })
  @Satisfies(isStorableText, 'name must not contain NUL characters or unpaired surrogates')
  @IsString({ message: 'name must be a string' })
  name!: string;
}

@RejectsUnknownFields(READ_ONLY_FIELDS)
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

export class KeyListQuery extends KeyQuery {
  @Field({ type: 'integer', minimum: 1, default: 1 })
  page?: unknown;

  @Field({
    type: 'integer',
    minimum: 1,
    maximum: MAX_KEY_PAGE_SIZE,
    default: MAX_KEY_PAGE_SIZE,
    description: 'Keys per page',
  })
  page_count?: unknown;
}

/** Converts a request body to key fields. An undefined field is omitted; null stays null, which removes the value. */
export function toKeyFields(changes: KeyChanges): Partial<KeyFields> {
  const { name, usage_limit_usd, reset_period, expire_at, models, blocked, metadata, dedupe_seconds } = changes;
  return {
    ...(name === undefined ? {} : { name }),
    ...(usage_limit_usd === undefined
      ? {}
      : { limit: usage_limit_usd === null ? null : money.roundToPicoUsd(usage_limit_usd) }),
    ...(reset_period === undefined ? {} : { resetPeriod: reset_period }),
    ...(expire_at === undefined ? {} : { expireAt: parseInstant(expire_at) ?? null }),
    ...(models === undefined ? {} : { models }),
    ...(blocked === undefined ? {} : { blocked }),
    ...(metadata === undefined ? {} : { metadata: metadata ?? {} }),
    ...(dedupe_seconds === undefined ? {} : { dedupeSeconds: dedupe_seconds }),
  };
}
