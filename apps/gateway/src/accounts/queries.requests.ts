import { IsOptional, IsString } from 'class-validator';
import { parseInstant } from '#domain';
import { BadRequestError } from '../edge/errors/errors.ts';
import { IsBooleanFlag, Satisfies } from '../edge/validation/validation.ts';
import { Field } from '../openapi/request-schema.ts';
import { CREDIT_ID, dateOrTime } from '../openapi/schemas.ts';

export const PAGE_SIZE = 20;
export const MAX_PAGE_SIZE = 100;
/** More pages than any history has, yet few enough that the number of the last record is a safe integer. */
const MAX_PAGE = 1_000_000_000;

export class HistoryQuery {
  @Field(CREDIT_ID)
  @IsOptional()
  @IsString()
  credit_id?: string;

  @IsBooleanFlag('Include all queries of the account; only valid with an API key')
  all_keys?: string;

  @Field({ description: 'Only queries of this API key; only valid with the credit id' })
  @IsOptional()
  @IsString()
  api_key?: string;

  @Field(dateOrTime('Only queries at or after this time'))
  @IsOptional()
  @Satisfies((value) => parseInstant(value) !== undefined, 'start_date must be an ISO 8601 date or date-time')
  start_date?: string;

  @Field(dateOrTime('Only queries at or before this time; a date without a time includes that day'))
  @IsOptional()
  @Satisfies((value) => parseInstant(value) !== undefined, 'end_date must be an ISO 8601 date or date-time')
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

/**
 * Parses a page number or page size, removes its fraction and clamps it to 1 to `MAX_PAGE`.
 * @returns `defaultPage` if it is missing or empty
 * @throws BadRequestError if it is not a finite number
 */
export function parsePageNumber(name: string, value: unknown, defaultPage: number): number {
  if (value === undefined || value === '') return defaultPage;
  const number = Number(value);
  if (!Number.isFinite(number)) throw new BadRequestError(`${name} must be a number`, name);
  return Math.min(Math.max(Math.trunc(number), 1), MAX_PAGE);
}

/** Extends a date without a time to the end of its day. */
export function toEndOfDay(date: string | undefined): string | undefined {
  return date?.length === 'yyyy-mm-dd'.length ? `${date}T23:59:59.999Z` : date;
}
