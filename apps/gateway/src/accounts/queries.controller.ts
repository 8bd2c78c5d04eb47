import { Controller, Get, Query, Req } from '@nestjs/common';
import { IsOptional, IsString } from 'class-validator';
import type { FastifyRequest } from 'fastify';
import { instantIn } from '#domain';
import { usdNumber } from '#kernel';
import { type HistoryFilter, type HistoryRecord, readHistory } from '#projections';
import { Authenticator, apiKeyOf } from '../edge/authenticator.ts';
import { BooksReader } from '../edge/books-reader.ts';
import { InvalidRequest } from '../edge/errors.ts';
import { Satisfies, valid } from '../edge/validated.ts';
import { json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { BOOLEAN, CREDIT_ID, dateOrTime } from '../openapi/schemas.ts';
import { History } from './queries.schemas.ts';

const PAGE_SIZE = 20;
const MAX_PAGE_SIZE = 100;
/** Far past the end of everything, and an exact number of records all the same. */
const MAX_PAGE = 1_000_000_000;

class HistoryQuery {
  @Field(CREDIT_ID)
  @IsOptional()
  @IsString()
  credit_id?: string;

  @Field({ ...BOOLEAN, description: 'All keys of the account, where a key asks' })
  all_keys?: unknown;

  @Field({ description: 'Only this key, where the account asks' })
  @IsOptional()
  @IsString()
  api_key?: string;

  @Field(dateOrTime('On or after'))
  @IsOptional()
  @Satisfies((value) => instantIn(value) !== undefined, 'start_date must be an ISO 8601 date')
  start_date?: string;

  @Field(dateOrTime('On or before; a date without a time includes its day'))
  @IsOptional()
  @Satisfies((value) => instantIn(value) !== undefined, 'end_date must be an ISO 8601 date')
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

  @Field({ type: 'integer', minimum: 1, maximum: MAX_PAGE_SIZE, default: PAGE_SIZE, description: 'The size of a page' })
  page_count?: unknown;
}

@Controller('queries')
export class QueriesController {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly books: BooksReader,
  ) {}

  @Get('history')
  @Operation({
    id: 'getHistory',
    tag: 'History',
    summary: 'Lists what was used, the newest first',
    description: 'A key sees what was used with it; an account sees everything.',
    auth: 'key',
    query: HistoryQuery,
    example: { page: 1, page_count: 20 },
    answer: json(History),
  })
  async history(@Req() request: FastifyRequest, @Query() sent: unknown) {
    const query = valid(HistoryQuery, sent);
    const filter = await this.filterFor(request, query);
    const page = pageNumber('page', query.page, 1);
    const size = Math.min(pageNumber('page_count', query.page_count, PAGE_SIZE), MAX_PAGE_SIZE);
    await this.books.showAccount(filter.accountId, 'queries');
    const { records, total } = await readHistory(this.books.pool, filter, page, size);
    const pagination = { page, page_count: size, total, total_pages: Math.ceil(total / size) };
    return { status: 'success', data: records.map(wire), pagination };
  }

  /** A key sees its own queries unless it asks for all keys; an account sees all unless it asks for one key's. */
  private async filterFor(request: FastifyRequest, query: HistoryQuery): Promise<HistoryFilter> {
    const byKey = apiKeyOf(request) !== undefined;
    if (byKey && query.api_key !== undefined) {
      throw new InvalidRequest('api_key is only valid when authenticated by credit_id', 'api_key');
    }
    if (!byKey && query.all_keys !== undefined) {
      throw new InvalidRequest('all_keys is only valid when authenticated by an API key', 'all_keys');
    }
    const { accountId, keyId } = await this.authenticator.reader(request, query.credit_id);
    const wanted = byKey ? keyId : query.api_key && (await this.authenticator.keyOf(accountId, query.api_key));
    if (query.api_key !== undefined && !wanted) throw new InvalidRequest('api_key is none of this account', 'api_key');
    const ofKey = wanted && query.all_keys !== 'true' ? { keyId: wanted } : {};
    return {
      accountId,
      ...ofKey,
      from: instantIn(query.start_date),
      to: instantIn(endOfDay(query.end_date)),
      ...(query.model ? { model: query.model } : {}),
      ...(query.query_source ? { source: query.query_source } : {}),
      ...(query.query_type ? { type: query.query_type } : {}),
    };
  }
}

function wire(record: HistoryRecord) {
  return {
    timestamp: record.at,
    model: record.model,
    input_count: record.inputCount,
    output_count: record.outputCount,
    price_in_usd: usdNumber(record.price),
    query_type: record.type,
    query_source: record.source,
    api_key_id: record.keyId,
    isOnline: record.online,
    isFreeModel: record.free,
    isEstimated: record.estimated,
    error_code: record.errorCode,
    request_id: record.requestId,
  };
}

/** Clients send all kinds of pages; only what is no number at all is refused. */
function pageNumber(name: string, value: unknown, byDefault: number): number {
  if (value === undefined || value === '') return byDefault;
  const number = Number(value);
  if (!Number.isFinite(number)) throw new InvalidRequest(`${name} must be a number`, name);
  return Math.min(Math.max(Math.trunc(number), 1), MAX_PAGE);
}

/** A date without a time includes the whole day. */
function endOfDay(date: string | undefined): string | undefined {
  return date?.length === 'yyyy-mm-dd'.length ? `${date}T23:59:59.999Z` : date;
}
