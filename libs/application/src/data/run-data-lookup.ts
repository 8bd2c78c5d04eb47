/** Lookups of data: quote → hold → call → settle. A lookup has one vendor and one price, whatever it finds. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { DataEndpoint, PriceList } from '#catalogue';
import { calculateMaxPrice, NO_USAGE, type Usage } from '#domain';
import { type PicoUsd, ZERO_USD } from '#kernel';
import { BillingEngine } from '../billing/billing-engine.ts';
import type { Payer } from '../billing/payer.ts';
import type { Order, Purchase } from '../billing/purchase.ts';
import { type ByteWriter, relayBytes } from '../billing/relay-bytes.ts';
import type { UpstreamCall } from '../billing/upstream-call.ts';
import { CatalogueService } from '../catalogue-service.ts';
import { InvalidRequestError, toUpstreamError, UpstreamError } from '../errors.ts';
import type { DataResponse, FileDataResponse, JsonDataResponse } from '../providers/data-calls.ts';
import { ProviderRegistry } from '../providers/provider.ts';
import { getByPath, isEmptyResult } from './field-paths.ts';
import { type ParsedDataLookup, parseDataLookup, type RawDataLookup } from './parse-data-lookup.ts';

export interface DataLookupParams {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly provider: string;
  readonly action: string;
}

/** Takes a file as it comes; what is no file, it only waits for. */
export interface DataFileWriter extends ByteWriter {
  /** Hears, before anything is sent, what a file will be charged with. */
  priced(price: PicoUsd): void;
}

export interface DataLookupResult {
  /** 200, or 202 where the vendor is still looking. */
  readonly status: number;
  /** JSON as the vendor wrote it. */
  readonly bytes: Uint8Array;
  readonly charged: PicoUsd;
}

/** @returns undefined for a file, which went to the client as it came */
export class RunDataLookup extends Command<DataLookupResult | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: DataLookupParams,
    readonly asked: RawDataLookup,
    readonly client: DataFileWriter,
  ) {
    super();
  }
}

/** A lookup that is being sold. */
interface LookupOrder {
  readonly entry: DataEndpoint;
  readonly wanted: ParsedDataLookup;
  readonly sale: Order;
}

const PENDING = 202;

/** A vendor has no answer yet, and does not invoice that: what it was paid with, or its key, asks again. */
class StillLooking extends UpstreamError {
  constructor(readonly found: JsonDataResponse) {
    super('not_served', 'The upstream is still looking', { status: PENDING });
  }
}

@CommandHandler(RunDataLookup)
export class RunDataLookupHandler implements ICommandHandler<RunDataLookup> {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly paying: BillingEngine,
    private readonly providers: ProviderRegistry,
  ) {}

  async execute({ payer, request, asked, client }: RunDataLookup): Promise<DataLookupResult | undefined> {
    const catalogue = await this.catalogues.servedTo(payer);
    const entry = catalogue.findDataEndpoint(request.provider, request.action);
    if (!entry) throw new InvalidRequestError(404, `There is no lookup ${request.provider}/${request.action}`);
    const wanted = parseDataLookup(asked, entry);
    const order = { entry, wanted, sale: saleOf(entry, catalogue.priceList, request) };
    try {
      if (entry.binary) return void (await this.streamed(payer, order, client));
      return await this.whole(payer, order, client);
    } catch (error) {
      if (error instanceof StillLooking) return { status: PENDING, bytes: error.found.bytes, charged: ZERO_USD };
      throw asAnswered(error);
    }
  }

  private async whole(payer: Payer, order: LookupOrder, client: DataFileWriter): Promise<DataLookupResult> {
    const serve = async (purchase: Purchase) => {
      const answer = await this.ask<JsonDataResponse>(purchase, order);
      if (answer instanceof UpstreamError) return answer;
      if (answer.status === PENDING) throw new StillLooking(answer);
      purchase.billMade(useOf(answer, order));
      return answer;
    };
    const { answer, receipt } = await this.paying.whole(payer, order.sale, serve, client);
    if (answer instanceof UpstreamError) throw answer;
    return { status: 200, bytes: answer.bytes, charged: receipt.charged };
  }

  private async streamed(payer: Payer, order: LookupOrder, client: DataFileWriter): Promise<void> {
    let failed: UpstreamError | undefined;
    const serve = async (purchase: Purchase) => {
      const answer = await this.ask<FileDataResponse>(purchase, order);
      if (answer instanceof UpstreamError) {
        failed = answer;
        return answer;
      }
      const { vendorId } = answer;
      purchase.billMade({ usage: { lookup: 1 }, estimated: false, ...(vendorId === undefined ? {} : { vendorId }) });
      client.priced(order.sale.atMost);
      return relayBytes(answer, purchase, client);
    };
    await this.paying.stream(payer, order.sale, serve, client);
    if (failed) throw failed;
  }

  /** @returns a failure that is charged all the same, because the vendor charges for it */
  private async ask<A extends DataResponse>(
    purchase: Purchase,
    { entry, wanted }: LookupOrder,
  ): Promise<A | UpstreamError> {
    const { mostResults, ...asked } = wanted;
    const { hold, signal } = purchase;
    const call: UpstreamCall<A | UpstreamError> = {
      make: async ({ upstream, onDisconnect }) => {
        const lookUp = this.providers.of(hold, upstream, 'data');
        const more = { isFile: entry.binary === true, billsOn: onDisconnect !== 'stops', signal };
        return lookUp({ ...asked, ...more }).catch((error: unknown) => {
          const failure = toUpstreamError(error);
          if (isCharged(failure, entry)) return failure;
          throw failure;
        }) as Promise<A | UpstreamError>;
      },
      counted: async () => ({ lookup: 1 }),
      lost: () => ({ usage: usageOf(mostResults, entry) }),
    };
    const { answer } = await purchase.ask(call);
    if (!(answer instanceof UpstreamError)) return answer;
    purchase.billMade({ usage: { lookup: 1 }, estimated: false });
    purchase.cutBy = purchase.brokenOff(answer);
    return answer;
  }
}

function saleOf({ endpoint }: DataEndpoint, priceList: PriceList, { requestId: id, source }: DataLookupParams): Order {
  const { of: model, prices } = endpoint.tariff;
  const price = calculateMaxPrice({ lookup: 1 }, prices);
  const query = { model, type: 'data_enrichment', source, online: false, free: price === 0n } as const;
  return { id, query, model: { id: model }, endpoints: [endpoint], priceList, atLeast: price, atMost: price };
}

/** What an answer comes to: nothing, where nothing was found and the vendor does not charge for that. */
function useOf({ value, vendorId }: JsonDataResponse, { entry, wanted }: LookupOrder) {
  const { results, charged, billed } = entry;
  const isFree = results !== undefined && !charged.empty && isEmptyResult(getByPath(value, results));
  const counted = billed ? countIn(value, billed.count, wanted.mostResults) : 0;
  return {
    usage: isFree ? NO_USAGE : usageOf(counted ?? wanted.mostResults, entry),
    estimated: !isFree && counted === undefined,
    ...(vendorId === undefined ? {} : { vendorId }),
  };
}

function usageOf(result: number, { billed }: DataEndpoint): Usage {
  return billed ? { lookup: 1, result } : { lookup: 1 };
}

/**
 * Results, listed or counted; undefined where the answer does not have them as the entry says, or more of them than can be true.
 * @param most that were asked for: what was asked is what is owed, so that no lookup costs more than it is sold for
 */
function countIn(value: unknown, path: string, most: number): number | undefined {
  const found = getByPath(value, path);
  const count = Array.isArray(found) ? found.length : found;
  return Number.isInteger(count) && (count as number) >= 0 && (count as number) <= most ? (count as number) : undefined;
}

/** As far as it has a status: whose answer is lost is the house's. */
function isCharged({ code, status = 0, delivered }: UpstreamError, { charged }: DataEndpoint): boolean {
  if (code === 'answer_too_long') return charged.tooLong === true;
  if (delivered !== undefined) return false;
  return status === 404 ? charged.notFound : status >= 500 && charged.failed;
}

/** What the vendor does not have, or cannot make sense of, has the vendor's status and words. */
function asAnswered(error: unknown): unknown {
  if (!(error instanceof UpstreamError) || error.code !== 'invalid_request') return error;
  const { status, told, param = null } = error;
  return status === 404 || status === 422 ? new InvalidRequestError(status, told, param) : error;
}
