/**
 * Data lookups: quote → hold → call → settle. A lookup has one provider and one price. It may be free only if it finds
 * nothing, is pending, or fails.
 */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Catalogue, DataEndpoint, PriceList } from '#catalogue';
import { calculateMaxPrice, NO_USAGE, type Usage } from '#domain';
import { type PicoUsd, ZERO_USD } from '#kernel';
import { BillingEngine } from '../billing/billing-engine.ts';
import type { Order } from '../billing/order.ts';
import type { Payer } from '../billing/payer.ts';
import type { Purchase } from '../billing/purchase.ts';
import { type ByteWriter, relayBytes } from '../billing/relay-bytes.ts';
import type { UpstreamCall } from '../billing/upstream-call.ts';
import { CatalogueService } from '../catalogue-service.ts';
import { InvalidRequestError, toUpstreamError, UpstreamError } from '../errors.ts';
import { assertOffered } from '../missing-settings.ts';
import type { DataResponse, FileDataResponse, JsonDataResponse } from '../providers/data-calls.ts';
import { ProviderRegistry } from '../providers/provider.ts';
import { getByPath, isEmptyResult } from './field-paths.ts';
import { type ParsedDataLookup, parseDataLookup, type RawDataLookup } from './parse-data-lookup.ts';

export interface DataLookupParams {
  readonly requestId: string;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
  readonly provider: string;
  readonly action: string;
}

/** Receives a file as it arrives. For any other response this is only the connection of the client. */
export interface DataFileWriter extends ByteWriter {
  /** Called with the price of a file before anything is sent. */
  setPrice(price: PicoUsd): void;
}

export interface DataLookupResult {
  /** 200, or 202 while the provider has no result yet. */
  readonly status: number;
  /** JSON as the provider sent it. */
  readonly bytes: Uint8Array;
  readonly charged: PicoUsd;
}

/** @returns undefined for a file, which was streamed to the client */
export class RunDataLookup extends Command<DataLookupResult | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: DataLookupParams,
    readonly input: RawDataLookup,
    readonly client: DataFileWriter,
  ) {
    super();
  }
}

interface LookupOrder {
  readonly entry: DataEndpoint;
  readonly lookup: ParsedDataLookup;
  readonly order: Order;
}

const PENDING_STATUS = 202;

/** @throws InvalidRequestError 404 if no provider of this installation serves the lookup */
export function assertLookupOffered(
  { provider, action }: Pick<RunDataLookup['request'], 'provider' | 'action'>,
  catalogue: Catalogue,
): void {
  const name = `${provider}/${action}`;
  assertOffered(catalogue, name, `The lookup "${name}"`, null);
}

/**
 * The provider has no result yet, and does not invoice the call. The client can repeat the request with the same
 * payment or Idempotency-Key.
 */
class LookupPendingError extends UpstreamError {
  constructor(readonly response: JsonDataResponse) {
    super('not_served', 'The provider has no result yet', { status: PENDING_STATUS });
  }
}

@CommandHandler(RunDataLookup)
export class RunDataLookupHandler implements ICommandHandler<RunDataLookup> {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly billing: BillingEngine,
    private readonly providers: ProviderRegistry,
  ) {}

  async execute({ payer, request, input, client }: RunDataLookup): Promise<DataLookupResult | undefined> {
    const catalogue = await this.catalogues.loadForPayer(payer);
    assertLookupOffered(request, catalogue);
    const entry = catalogue.findDataEndpoint(request.provider, request.action);
    if (!entry) throw new InvalidRequestError(404, `Data lookup ${request.provider}/${request.action} not found`);
    const lookup = parseDataLookup(input, entry);
    const lookupOrder = { entry, lookup, order: toOrder(entry, catalogue.priceList, request) };
    try {
      if (entry.binary) return void (await this.sellFile(payer, lookupOrder, client));
      return await this.sellJson(payer, lookupOrder, client);
    } catch (error) {
      if (error instanceof LookupPendingError)
        return { status: PENDING_STATUS, bytes: error.response.bytes, charged: ZERO_USD };
      throw toClientError(error);
    }
  }

  private async sellJson(payer: Payer, lookupOrder: LookupOrder, client: DataFileWriter): Promise<DataLookupResult> {
    const serve = async (purchase: Purchase) => {
      const response = await this.callProvider<JsonDataResponse>(purchase, lookupOrder);
      if (response instanceof UpstreamError) return response;
      if (response.status === PENDING_STATUS) throw new LookupPendingError(response);
      purchase.billUsage(toCallUsage(response, lookupOrder), response.reportedBill);
      return response;
    };
    const { result, receipt } = await this.billing.sell(payer, lookupOrder.order, serve, client);
    if (result instanceof UpstreamError) throw result;
    return { status: 200, bytes: result.bytes, charged: receipt.charged };
  }

  private async sellFile(payer: Payer, lookupOrder: LookupOrder, client: DataFileWriter): Promise<void> {
    let failed: UpstreamError | undefined;
    const serve = async (purchase: Purchase) => {
      const response = await this.callProvider<FileDataResponse>(purchase, lookupOrder);
      if (response instanceof UpstreamError) {
        failed = response;
        return response;
      }
      const { vendorId } = response;
      purchase.billUsage({ usage: { lookup: 1 }, estimated: false, ...(vendorId === undefined ? {} : { vendorId }) });
      client.setPrice(lookupOrder.order.maxPrice);
      return relayBytes(response, purchase, client);
    };
    await this.billing.sellStream(payer, lookupOrder.order, serve, client);
    if (failed) throw failed;
  }

  /** @returns the response, or a failure that the client pays for because the provider charges for it */
  private async callProvider<A extends DataResponse>(
    purchase: Purchase,
    { entry, lookup }: LookupOrder,
  ): Promise<A | UpstreamError> {
    const { maxResults, ...request } = lookup;
    const { hold, signal } = purchase;
    const call: UpstreamCall<A | UpstreamError> = {
      send: async ({ upstream, onDisconnect }) => {
        const fetchData = this.providers.get(hold, upstream, 'data');
        return fetchData({
          ...request,
          isFile: entry.binary === true,
          isBilledAfterDisconnect: onDisconnect !== 'stops',
          signal,
        }).catch((error: unknown) => {
          const failure = toUpstreamError(error);
          if (isCharged(failure, entry)) return failure;
          throw failure;
        }) as Promise<A | UpstreamError>;
      },
      estimateUsage: async () => ({ lookup: 1 }),
      getLostUsage: () => ({ usage: toUsage(maxResults, entry) }),
    };
    const { response } = await purchase.call(call);
    if (!(response instanceof UpstreamError)) return response;
    purchase.billUsage({ usage: { lookup: 1 }, estimated: false });
    purchase.endedBy = purchase.markLastAttemptFailed(response);
    return response;
  }
}

function toOrder({ endpoint }: DataEndpoint, priceList: PriceList, { requestId: id, source }: DataLookupParams): Order {
  const { of: model, prices } = endpoint.tariff;
  const price = calculateMaxPrice({ lookup: 1 }, prices);
  const query = { model, type: 'data_enrichment', source, online: false, free: false } as const;
  return { id, query, model: { id: model }, endpoints: [endpoint], priceList, minPrice: price, maxPrice: price };
}

/** Returns the usage to bill for a response: none if nothing was found and the provider does not charge for that. */
function toCallUsage({ value, vendorId }: JsonDataResponse, { entry, lookup }: LookupOrder) {
  const { results, charged, billed } = entry;
  const isFree = results !== undefined && !charged.empty && isEmptyResult(getByPath(value, results));
  const resultCount = billed ? countResults(value, billed.count, lookup.maxResults) : 0;
  return {
    usage: isFree ? NO_USAGE : toUsage(resultCount ?? lookup.maxResults, entry),
    estimated: !isFree && resultCount === undefined,
    ...(vendorId === undefined ? {} : { vendorId }),
  };
}

function toUsage(result: number, { billed }: DataEndpoint): Usage {
  return billed ? { lookup: 1, result } : { lookup: 1 };
}

/**
 * Counts the results of a response, which has a list or a number of them.
 * @param maxResults requested number: more than that is never billed, so that no lookup costs more than its price
 * @returns undefined if the response has no such count, or an implausible one
 */
function countResults(value: unknown, path: string, maxResults: number): number | undefined {
  const results = getByPath(value, path);
  const count = Array.isArray(results) ? results.length : results;
  return Number.isInteger(count) && (count as number) >= 0 && (count as number) <= maxResults
    ? (count as number)
    : undefined;
}

/**
 * Whether the client pays for a failure because the provider charges for it: a 404, a status of 500 or more, or a
 * response that is too long. The operator absorbs the cost of a lost response.
 */
function isCharged({ code, status = 0, deliveredText }: UpstreamError, { charged }: DataEndpoint): boolean {
  if (code === 'answer_too_long') return charged.tooLong === true;
  if (deliveredText !== undefined) return false;
  return status === 404 ? charged.notFound : status >= 500 && charged.failed;
}

/**
 * Converts a 404 or 422 of the provider, which does not have or does not understand what was requested, to an
 * InvalidRequestError. The client gets the provider's status and message.
 */
function toClientError(error: unknown): unknown {
  if (!(error instanceof UpstreamError) || error.code !== 'invalid_request') return error;
  const { status, publicMessage, param = null } = error;
  return status === 404 || status === 422 ? new InvalidRequestError(status, publicMessage, param) : error;
}
