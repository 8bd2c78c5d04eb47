import { IsOptional, IsString } from 'class-validator';
import { parseInstant } from '#domain';
import { BadRequestError } from '../edge/errors/errors.ts';
import { IsBooleanFlag, Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { CREDIT_ID, dateOrTime } from '../openapi/schemas.ts';

export const PAGE_SIZE = 20;
export const MAX_PAGE_SIZE = 100;
/** Beyond any history, and still exact as a number of records. */
const MAX_PAGE = 1_000_000_000;

export class HistoryQuery {
  @Field(CREDIT_ID)
  @IsOptional()
  @IsString()
  credit_id?: string;

  @IsBooleanFlag('All keys of the account; only with an API key')
  all_keys?: string;

  @Field({ description: 'Only this key; only with the id of the account' })
  @IsOptional()
  @IsString()
  api_key?: string;

  @Field(dateOrTime('On or after'))
  @IsOptional()
  @Satisfies((value) => parseInstant(value) !== undefined, 'start_date must be an ISO 8601 date')
  start_date?: string;

  @Field(dateOrTime('On or before; a date without a time includes its day'))
  @IsOptional()
  @Satisfies((value) => parseInstant(value) !== undefined, 'end_date must be an ISO 8601 date')
  end_date?: string;

  @IsOptional()
  @IsString()
  model?: string;

  @IsOptional()
  @IsString()
  query_source?: string;

  @IsOptional()
  @IsString()
  query_type?: string;

  @Field({ type: 'integer', minimum: 1, default: 1 })
  page?: unknown;

  @Field({ type: 'integer', minimum: 1, maximum: MAX_PAGE_SIZE, default: PAGE_SIZE, description: 'Records per page' })
  page_count?: unknown;
}

/** Out-of-range pages are clamped; only values that are not numbers are refused. */
export function parsePageNumber(name: string, value: unknown, defaultPage: number): number {
  if (value === undefined || value === '') return defaultPage;
  const number = Number(value);
  if (!Number.isFinite(number)) throw new BadRequestError(`${name} must be a number`, name);
  return Math.min(Math.max(Math.trunc(number), 1), MAX_PAGE);
}

/** A date without a time includes the whole day. */
export function toEndOfDay(date: string | undefined): string | undefined {
  return date?.length === 'yyyy-mm-dd'.length ? `${date}T23:59:59.999Z` : date;
}
