/** Lookups of data: quote → hold → call → settle. A lookup has one vendor and one price, whatever it finds. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { DataEndpoint, PriceList } from '#catalogue';
import { calculateMaxPrice, NO_USAGE, type Usage } from '#domain';
import { type PicoUsd, ZERO_USD } from '#kernel';
import { Paying } from '../billing/billing-engine.ts';
import type { Payer } from '../billing/payer.ts';
import type { Purchase, Sale } from '../billing/purchase.ts';
import { type BytesClient, relayed } from '../billing/relay-bytes.ts';
import type { UpstreamCall } from '../billing/upstream-call.ts';
import { Catalogues } from '../catalogue-service.ts';
import { asFailure, UnservableRequest, UpstreamFailure } from '../errors.ts';
import type { DataAnswer, FoundData, FoundFile } from '../providers/data-calls.ts';
import { Providers } from '../providers/provider.ts';
import { isNothing, valueAt } from './field-paths.ts';
import { type AskedLookUp, type WantedLookUp, wantedLookUp } from './parse-data-lookup.ts';

export interface LookUpRequest {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly provider: string;
  readonly action: string;
}

/** Takes a file as it comes; what is no file, it only waits for. */
export interface LookUpClient extends BytesClient {
  /** Hears, before anything is sent, what a file will be charged with. */
  priced(price: PicoUsd): void;
}

export interface LookedUp {
  /** 200, or 202 where the vendor is still looking. */
  readonly status: number;
  /** JSON as the vendor wrote it. */
  readonly bytes: Uint8Array;
  readonly charged: PicoUsd;
}

/** @returns undefined for a file, which went to the client as it came */
export class LookUp extends Command<LookedUp | undefined> {
  constructor(
    readonly payer: Payer,
    readonly request: LookUpRequest,
    readonly asked: AskedLookUp,
    readonly client: LookUpClient,
  ) {
    super();
  }
}

/** A lookup that is being sold. */
interface Order {
  readonly entry: DataEndpoint;
  readonly wanted: WantedLookUp;
  readonly sale: Sale;
}

const PENDING = 202;

/** A vendor has no answer yet, and does not invoice that: what it was paid with, or its key, asks again. */
class StillLooking extends UpstreamFailure {
  constructor(readonly found: FoundData) {
    super('not_served', 'The upstream is still looking', { status: PENDING });
  }
}

@CommandHandler(LookUp)
export class LookUpHandler implements ICommandHandler<LookUp> {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly paying: Paying,
    private readonly providers: Providers,
  ) {}

  async execute({ payer, request, asked, client }: LookUp): Promise<LookedUp | undefined> {
    const catalogue = await this.catalogues.servedTo(payer);
    const entry = catalogue.dataEndpoint(request.provider, request.action);
    if (!entry) throw new UnservableRequest(404, `There is no lookup ${request.provider}/${request.action}`);
    const wanted = wantedLookUp(asked, entry);
    const order = { entry, wanted, sale: saleOf(entry, catalogue.priceList, request) };
    try {
      if (entry.binary) return void (await this.streamed(payer, order, client));
      return await this.whole(payer, order, client);
    } catch (error) {
      if (error instanceof StillLooking) return { status: PENDING, bytes: error.found.bytes, charged: ZERO_USD };
      throw asAnswered(error);
    }
  }

  private async whole(payer: Payer, order: Order, client: LookUpClient): Promise<LookedUp> {
    const serve = async (purchase: Purchase) => {
      const answer = await this.ask<FoundData>(purchase, order);
      if (answer instanceof UpstreamFailure) return answer;
      if (answer.status === PENDING) throw new StillLooking(answer);
      purchase.billMade(useOf(answer, order));
      return answer;
    };
    const { answer, receipt } = await this.paying.whole(payer, order.sale, serve, client);
    if (answer instanceof UpstreamFailure) throw answer;
    return { status: 200, bytes: answer.bytes, charged: receipt.charged };
  }

  private async streamed(payer: Payer, order: Order, client: LookUpClient): Promise<void> {
    let failed: UpstreamFailure | undefined;
    const serve = async (purchase: Purchase) => {
      const answer = await this.ask<FoundFile>(purchase, order);
      if (answer instanceof UpstreamFailure) {
        failed = answer;
        return answer;
      }
      const { vendorId } = answer;
      purchase.billMade({ usage: { lookup: 1 }, estimated: false, ...(vendorId === undefined ? {} : { vendorId }) });
      client.priced(order.sale.atMost);
      return relayed(answer, purchase, client);
    };
    await this.paying.stream(payer, order.sale, serve, client);
    if (failed) throw failed;
  }

  /** @returns a failure that is charged all the same, because the vendor charges for it */
  private async ask<A extends DataAnswer>(purchase: Purchase, { entry, wanted }: Order): Promise<A | UpstreamFailure> {
    const { mostResults, ...asked } = wanted;
    const { hold, signal } = purchase;
    const call: UpstreamCall<A | UpstreamFailure> = {
      make: async ({ upstream, onDisconnect }) => {
        const lookUp = this.providers.of(hold, upstream, 'data');
        const more = { isFile: entry.binary === true, billsOn: onDisconnect !== 'stops', signal };
        return lookUp({ ...asked, ...more }).catch((error: unknown) => {
          const failure = asFailure(error);
          if (isCharged(failure, entry)) return failure;
          throw failure;
        }) as Promise<A | UpstreamFailure>;
      },
      counted: async () => ({ lookup: 1 }),
      lost: () => ({ usage: usageOf(mostResults, entry) }),
    };
    const { answer } = await purchase.ask(call);
    if (!(answer instanceof UpstreamFailure)) return answer;
    purchase.billMade({ usage: { lookup: 1 }, estimated: false });
    purchase.cutBy = purchase.brokenOff(answer);
    return answer;
  }
}

function saleOf({ endpoint }: DataEndpoint, priceList: PriceList, { requestId: id, source }: LookUpRequest): Sale {
  const { of: model, prices } = endpoint.tariff;
  const price = calculateMaxPrice({ lookup: 1 }, prices);
  const query = { model, type: 'data_enrichment', source, online: false, free: price === 0n } as const;
  return { id, query, model: { id: model }, endpoints: [endpoint], priceList, atLeast: price, atMost: price };
}

/** What an answer comes to: nothing, where nothing was found and the vendor does not charge for that. */
function useOf({ value, vendorId }: FoundData, { entry, wanted }: Order) {
  const { results, charged, billed } = entry;
  const isFree = results !== undefined && !charged.empty && isNothing(valueAt(value, results));
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
  const found = valueAt(value, path);
  const count = Array.isArray(found) ? found.length : found;
  return Number.isInteger(count) && (count as number) >= 0 && (count as number) <= most ? (count as number) : undefined;
}

/** As far as it has a status: whose answer is lost is the house's. */
function isCharged({ code, status = 0, delivered }: UpstreamFailure, { charged }: DataEndpoint): boolean {
  if (code === 'answer_too_long') return charged.tooLong === true;
  if (delivered !== undefined) return false;
  return status === 404 ? charged.notFound : status >= 500 && charged.failed;
}

/** What the vendor does not have, or cannot make sense of, has the vendor's status and words. */
function asAnswered(error: unknown): unknown {
  if (!(error instanceof UpstreamFailure) || error.code !== 'invalid_request') return error;
  const { status, told, param = null } = error;
  return status === 404 || status === 422 ? new UnservableRequest(status, told, param) : error;
}
