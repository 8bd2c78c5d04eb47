import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, Catalogues } from '#application';
import { instantIn } from '#domain';
import { usdNumber } from '#kernel';
import { type HistoryFilter, type HistoryRecord, readHistory } from '#projections';
import { BooksReader } from '../edge/books-reader.ts';
import { Authenticated, Authenticator, hasApiKey } from '../edge/caller.ts';
import { InvalidRequest } from '../edge/errors.ts';
import { isTrue } from '../edge/validation.ts';
import { json, Operation } from '../openapi/operation.ts';
import { endOfDay, HistoryQuery, MAX_PAGE_SIZE, PAGE_SIZE, pageNumber } from './queries.requests.ts';
import { HistorySchema } from './queries.schemas.ts';

@Controller('queries')
export class QueriesController {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly books: BooksReader,
    private readonly catalogues: Catalogues,
  ) {}

  @Get('history')
  @Operation({
    id: 'getHistory',
    tag: 'History',
    summary: 'Lists the query history, newest first',
    description: 'An API key sees its own queries; an account sees all of them.',
    auth: 'key',
    follows: true,
    payer: 'query',
    query: HistoryQuery,
    example: { page: 1, page_count: 20 },
    answer: json(HistorySchema),
  })
  async history(
    @Authenticated() caller: Caller,
    @Query() query: HistoryQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    if (query.all_keys !== undefined && !hasApiKey(request)) {
      throw new InvalidRequest('all_keys is only valid when authenticated by an API key', 'all_keys');
    }
    const filter = await this.filterFor(caller, query);
    const page = pageNumber('page', query.page, 1);
    const size = Math.min(pageNumber('page_count', query.page_count, PAGE_SIZE), MAX_PAGE_SIZE);
    await this.books.showHistory(filter.accountId, reply);
    const { records, total } = await readHistory(this.books.pool, filter, page, size);
    const pagination = { page, page_count: size, total, total_pages: Math.ceil(total / size) };
    return { status: 'success', data: records.map(wire), pagination };
  }

  /** A key sees its own queries unless it asks for all keys; an account sees all unless it asks for one key's. */
  private async filterFor({ accountId, keyId }: Caller, query: HistoryQuery): Promise<HistoryFilter> {
    const byKey = keyId !== null;
    if (byKey && query.api_key !== undefined) {
      throw new InvalidRequest('api_key is only valid when authenticated by credit_id', 'api_key');
    }
    const wanted = byKey ? keyId : query.api_key && (await this.authenticator.keyOf(accountId, query.api_key));
    if (query.api_key !== undefined && !wanted) throw new InvalidRequest('api_key is none of this account', 'api_key');
    const ofKey = wanted && !isTrue(query.all_keys) ? { keyId: wanted } : {};
    return {
      accountId,
      ...ofKey,
      from: instantIn(query.start_date),
      to: instantIn(endOfDay(query.end_date)),
      ...(query.model ? { model: this.idOf(query.model) } : {}),
      ...(query.query_source ? { source: query.query_source } : {}),
      ...(query.query_type ? { type: query.query_type } : {}),
    };
  }

  /** A model is found by all of its names; one that is not sold any more by its id. */
  private idOf(name: string): string {
    const { current } = this.catalogues;
    const [base = name] = name.split(':');
    return (current.find(name) ?? current.find(base))?.id ?? name;
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
