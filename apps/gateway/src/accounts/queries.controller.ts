import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CatalogueService } from '#application';
import { parseInstant } from '#domain';
import { toUsdJsonNumber } from '#kernel';
import {
  getCountUnits,
  type HistoryFilter,
  type HistoryPage,
  type HistoryRecord,
  PageOutOfRangeError,
} from '#projections';
import { Authenticator, CurrentCaller } from '../edge/authentication/authenticator.ts';
import { hasApiKey } from '../edge/authentication/credential-headers.ts';
import { BadRequestError } from '../edge/errors/errors.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { isTrue } from '../edge/validation/validation.ts';
import { jsonContent, Operation } from '../openapi/operation.ts';
import { HistoryReadPool } from './history-read-pool.ts';
import { HistoryQuery, MAX_PAGE_SIZE, PAGE_SIZE, parsePageNumber, toEndOfDay } from './queries.requests.ts';
import { HistorySchema } from './queries.schemas.ts';

@Controller('queries')
export class QueriesController {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly readModels: ReadModelReader,
    private readonly historyReads: HistoryReadPool,
    private readonly catalogues: CatalogueService,
  ) {}

  @Get('history')
  @Operation({
    id: 'getHistory',
    tag: 'History',
    summary: 'Lists the query history, newest first',
    description:
      'With an API key, lists the queries of this key; with a credit id, all queries of the account. The total is the ' +
      'number of all records. With a filter by model, source or type, or if a time range includes a part of a day with ' +
      'more than 10,000 records, it counts at most 1,000 records after the page; `total_is_exact` reports whether that ' +
      'includes all records. ' +
      'Request the next page while `page` is less than `total_pages`. A page after more than 10,000 records is ' +
      'rejected, unless this gateway served one of the 100 pages before it within the last minute. With a filter by model, ' +
      'source or type, at most 10,000 records are searched for a page: to continue, send `looked_back_to` as ' +
      '`end_date`.',
    auth: 'key',
    readsAccountEvents: true,
    creditIdLocation: 'query',
    query: HistoryQuery,
    example: { page: 1, page_count: 20 },
    response: jsonContent(HistorySchema),
  })
  async getHistory(
    @CurrentCaller() caller: Caller,
    @Query() query: HistoryQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    if (query.all_keys !== undefined && !hasApiKey(request)) {
      throw new BadRequestError('all_keys is only valid when authenticated by an API key', 'all_keys');
    }
    const filter = await this.resolveFilter(caller, query);
    const page = parsePageNumber('page', query.page, 1);
    const size = Math.min(parsePageNumber('page_count', query.page_count, PAGE_SIZE), MAX_PAGE_SIZE);
    await this.readModels.waitForHistory(filter.accountId, reply);
    const { records, total, isTotalExact, searchedBackTo } = await this.loadPage(filter, page, size);
    const pagination = {
      page,
      page_count: size,
      total,
      total_pages: Math.ceil(total / size),
      total_is_exact: isTotalExact,
      looked_back_to: searchedBackTo,
    };
    return { status: 'success', data: records.map(toHistoryRecordJson), pagination };
  }

  private async loadPage(filter: HistoryFilter, page: number, size: number): Promise<HistoryPage> {
    try {
      return await this.historyReads.read(filter, page, size);
    } catch (error) {
      if (!(error instanceof PageOutOfRangeError)) throw error;
      throw new BadRequestError(
        'page is too far from recently requested pages; request pages in order, or narrow the results with end_date',
        'page',
      );
    }
  }

  /**
   * A caller with a key and no credit id gets the queries of that key, or all queries of the account with `all_keys`. A
   * caller with a credit id gets all queries, or those of one key with `api_key`.
   * @throws BadRequestError if `api_key` is sent without a credit id, or does not belong to the account
   */
  private async resolveFilter({ accountId, keyId }: Caller, query: HistoryQuery): Promise<HistoryFilter> {
    const isKeyCaller = keyId !== null;
    if (isKeyCaller && query.api_key !== undefined) {
      throw new BadRequestError('api_key is only valid when authenticated by credit_id', 'api_key');
    }
    const requestedKeyId = isKeyCaller
      ? keyId
      : query.api_key && (await this.authenticator.findKeyId(accountId, query.api_key));
    if (query.api_key !== undefined && !requestedKeyId)
      throw new BadRequestError('api_key does not belong to this account', 'api_key');
    const keyFilter = requestedKeyId && !isTrue(query.all_keys) ? { keyId: requestedKeyId } : {};
    return {
      accountId,
      ...keyFilter,
      from: parseInstant(query.start_date),
      to: parseInstant(toEndOfDay(query.end_date)),
      ...(query.model ? { model: this.resolveModelId(query.model) } : {}),
      ...(query.query_source ? { source: query.query_source } : {}),
      ...(query.query_type ? { type: query.query_type } : {}),
    };
  }

  /**
   * Returns the id of the model with this name. The name may be an alias or have a suffix such as `:online`. An unknown
   * name is returned unchanged, since it may be the id of a model that is no longer sold.
   */
  private resolveModelId(name: string): string {
    const { current } = this.catalogues;
    const [base = name] = name.split(':');
    return (current.findModel(name) ?? current.findModel(base))?.id ?? name;
  }
}

function toHistoryRecordJson(record: HistoryRecord) {
  const units = getCountUnits(record.type);
  return {
    timestamp: record.at,
    model: record.model,
    input_count: record.inputCount,
    input_unit: units.input,
    output_count: record.outputCount,
    output_unit: units.output,
    price_in_usd: toUsdJsonNumber(record.price),
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
