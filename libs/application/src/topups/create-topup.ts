/** Creates a top-up: the back end of its method is asked for a payment, and what it answers becomes a fact. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import {
  type InvoiceIssued,
  PAYMENT_METHODS,
  type PaymentMethod,
  type RateUsed,
  unitsFor,
  unitsIn,
  worth,
} from '#domain';
import { type Cause, money, type PicoUsd } from '#kernel';
import { Clock } from '../clock.ts';
import { UnservableRequest, UpstreamFailure } from '../failures.ts';
import { randomBase62 } from '../secrets.ts';
import { Topups } from '../streams.ts';
import { ExchangeRates } from './exchange-rates.ts';
import { checkedInvoice } from './lightning-invoice.ts';
import { type PaymentBackend, PaymentBackends, type RequestedPayment } from './payment-backend.ts';

/** 22 base62 characters: a top-up can be asked after by its id alone, so it must not be guessable. */
export const TOPUP_ID_LENGTH = 22;

export interface CreatedTopup {
  readonly topupId: string;
  readonly invoice: InvoiceIssued['data'];
}

/** An amount as the customer asked for it. */
export interface Requested {
  readonly amount: string;
  readonly currency: string;
}

export class CreateTopup extends Command<CreatedTopup> {
  constructor(
    readonly accountId: string,
    readonly method: string,
    readonly requested: Requested,
    readonly cause: Cause,
  ) {
    super();
  }
}

@CommandHandler(CreateTopup)
export class CreateTopupHandler implements ICommandHandler<CreateTopup> {
  constructor(
    private readonly topups: Topups,
    private readonly backends: PaymentBackends,
    private readonly rates: ExchangeRates,
    private readonly clock: Clock,
  ) {}

  /** @throws UnservableRequest, UpstreamFailure */
  async execute({ accountId, method, requested, cause }: CreateTopup): Promise<CreatedTopup> {
    const { terms, backend } = this.offered(method);
    assertWithinLimits(terms, requested);
    const rate = await this.rates.usdPer(terms.coin);
    const priced = price(terms, requested, rate);
    const at = this.clock.now();
    const { coin, destination: kind, bonus, confirmations, expiryMinutes } = terms;
    const expirySeconds = expiryMinutes * 60;
    const asked = { coin, kind, units: priced.units, memo: 'Countinghouse top-up', expirySeconds };
    const made = await backend.request(asked);
    if (made.destination.kind !== kind) throw new UpstreamFailure('upstream_error', `${backend.name} made no ${kind}`);
    const data: InvoiceIssued['data'] = {
      ...{ accountId, method: terms.method, coin, requested },
      ...{ usd: money.toJson(priced.value), units: priced.units.toString(), rate },
      ...{ backend: backend.name, reference: made.reference, destination: made.destination },
      ...{ bonusPercent: bonus?.percent ?? 0, confirmations },
      expiresAt: expiryOf(made, asked, at),
      at,
    };
    const topupId = randomBase62(TOPUP_ID_LENGTH);
    await this.topups.run(topupId, { type: 'IssueInvoice', data }, { ...cause, correlationId: topupId });
    return { topupId, invoice: data };
  }

  private offered(method: string): { readonly terms: PaymentMethod; readonly backend: PaymentBackend } {
    const terms = PAYMENT_METHODS.find((each) => each.method === method);
    const backend = terms && this.backends.of(terms);
    if (terms && backend) return { terms, backend };
    throw new UnservableRequest(404, `There is no payment method "${method}"`, 'method');
  }
}

function assertWithinLimits({ limits, coin }: PaymentMethod, { amount, currency }: Requested): void {
  const range = Object.hasOwn(limits, currency) ? limits[currency] : undefined;
  if (!range) {
    throw new UnservableRequest(400, `currency must be one of ${Object.keys(limits).join(', ')}`, 'currency');
  }
  const { min, max } = range;
  const [asked, least, most] = [amount, min, max].map((each) => amountIn(each, currency, coin)) as [
    bigint,
    bigint,
    bigint,
  ];
  if (asked < least || asked > most) {
    throw new UnservableRequest(400, `amount must be from ${min} to ${max} ${currency}`, 'amount');
  }
}

/** Whole units: pico-USD, or those of the coin. */
function amountIn(amount: string, currency: string, coin: PaymentMethod['coin']): bigint {
  try {
    return currency === 'USD' ? money.usdNearest(Number(amount)) : unitsIn(amount, currency, coin);
  } catch {
    throw new UnservableRequest(400, `amount is not an amount of ${currency}`, 'amount');
  }
}

/** What is to be paid, and what that is worth. */
function price({ coin }: PaymentMethod, { amount, currency }: Requested, rate: RateUsed) {
  const asked = amountIn(amount, currency, coin);
  if (currency === 'USD') return { units: unitsFor(asked as PicoUsd, coin, rate.value), value: asked as PicoUsd };
  return { units: asked, value: worth(asked, coin, rate.value) };
}

/** When a request for payment expires: a Lightning invoice says so itself, and is held against what was asked. */
function expiryOf(
  { destination, paymentHash }: RequestedPayment,
  { units, expirySeconds }: { readonly units: bigint; readonly expirySeconds: number },
  now: string,
): string {
  if (destination.kind !== 'bolt11') return new Date(Date.parse(now) + expirySeconds * 1000).toISOString();
  const known = paymentHash === undefined ? {} : { paymentHash };
  return checkedInvoice(destination.value, { msat: units, ...known, now });
}
