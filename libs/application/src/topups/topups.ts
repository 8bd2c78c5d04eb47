/** Top-ups over Lightning: an invoice is issued, its payment recorded, the account credited. Each step can be repeated. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { decode } from 'light-bolt11-decoder';
import { type InvoiceIssued, msatFor, type Payment, type TopupEvent, worth } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { Clock } from '../clock.ts';
import { UnservableRequest, UpstreamFailure } from '../failures.ts';
import { randomBase62 } from '../secrets.ts';
import { Accounts, Topups } from '../streams.ts';

/** 22 base62 characters: an invoice can be asked after by its id alone, so it must not be guessable. */
const TOPUP_ID_LENGTH = 22;
export const LIGHTNING_EXPIRY_SECONDS = 15 * 60;
/** A payment that reached the node this long after the invoice's expiry was still on its way in time. */
const GRACE_MS = 60_000;

const MSAT_DECIMALS = { SATS: 3, BTC: 11 } as const;

/** What a method takes: smallest and largest amount by currency, as decimal strings. */
export interface PaymentMethod {
  readonly method: string;
  readonly displayName: string;
  readonly limits: Readonly<Record<string, { readonly min: string; readonly max: string }>>;
  readonly expiryMinutes: number;
  readonly bonus: string | null;
}

export const PAYMENT_METHODS: readonly PaymentMethod[] = [
  {
    method: 'btc-lightning',
    displayName: 'Bitcoin Lightning',
    limits: {
      USD: { min: '0.1', max: '1000' },
      BTC: { min: '0.000001', max: '0.01' },
      SATS: { min: '100', max: '1000000' },
    },
    expiryMinutes: LIGHTNING_EXPIRY_SECONDS / 60,
    bonus: '5% Lightning fee bonus',
  },
];

/** The port to a Lightning node. Adapters: `libs/connectors`. */
export abstract class LightningNode {
  /** @throws UpstreamFailure */
  abstract createInvoice(msat: bigint, memo: string, expirySeconds: number): Promise<LightningInvoice>;
  /** @throws UpstreamFailure */
  abstract lookUp(paymentHash: string): Promise<LightningPayment | undefined>;
  /** Payments as they settle, until the node or `signal` ends it: a hint that can be lost or come twice. */
  abstract payments(signal: AbortSignal): AsyncIterable<LightningPayment>;
}

export interface LightningInvoice {
  readonly invoice: string;
  /** Lower-case hexadecimal. */
  readonly paymentHash: string;
}

export interface LightningPayment {
  readonly paymentHash: string;
  readonly msat: bigint;
  readonly paidAt: string;
}

export interface Rate {
  /** USD for one coin, as a decimal string. */
  readonly rate: string;
  readonly source: string;
}

/** The port to exchange rates. Adapters: `libs/connectors`. */
export abstract class ExchangeRates {
  /** @throws UpstreamFailure when no rate is fresh enough to sell at */
  abstract usdPerBitcoin(): Promise<Rate>;
}

export class RequestInvoice extends Command<{ readonly topupId: string; readonly position: bigint }> {
  constructor(
    readonly accountId: string,
    readonly method: string,
    readonly amount: string,
    readonly currency: string,
  ) {
    super();
  }
}

@CommandHandler(RequestInvoice)
export class RequestInvoiceHandler implements ICommandHandler<RequestInvoice> {
  constructor(
    private readonly topups: Topups,
    private readonly node: LightningNode,
    private readonly rates: ExchangeRates,
    private readonly clock: Clock,
  ) {}

  async execute({ accountId, method, amount, currency }: RequestInvoice) {
    assertWithinLimits(method, amount, currency);
    const { rate, source } = await this.rates.usdPerBitcoin();
    const { msat, value } = priced(amount, currency, rate);
    const at = this.clock.now();
    const { invoice, paymentHash } = await this.node.createInvoice(
      msat,
      'Countinghouse top-up',
      LIGHTNING_EXPIRY_SECONDS,
    );
    const expiresAt = checkedExpiry(invoice, paymentHash, msat, at);
    const data: InvoiceIssued['data'] = {
      accountId,
      method: 'btc-lightning',
      requested: { amount, currency },
      usd: money.toJson(value),
      rate,
      rateSource: source,
      msat: msat.toString(),
      paymentHash,
      invoice,
      expiresAt,
      at,
    };
    const topupId = randomBase62(TOPUP_ID_LENGTH);
    const { position } = await this.topups.run(topupId, { type: 'IssueInvoice', data });
    return { topupId, position };
  }
}

function assertWithinLimits(method: string, amount: string, currency: string): void {
  const known = PAYMENT_METHODS.find((each) => each.method === method);
  if (!known) throw new UnservableRequest(404, `There is no payment method "${method}"`, 'method');
  const limits = known.limits[currency];
  if (!limits) {
    throw new UnservableRequest(400, `currency must be one of ${Object.keys(known.limits).join(', ')}`, 'currency');
  }
  const asked = amountIn(amount, currency);
  if (asked < amountIn(limits.min, currency) || asked > amountIn(limits.max, currency)) {
    throw new UnservableRequest(400, `amount must be from ${limits.min} to ${limits.max} ${currency}`, 'amount');
  }
}

/** Whole units: pico-USD, or millisatoshis in whole satoshis. */
function amountIn(amount: string, currency: string): bigint {
  try {
    if (currency === 'USD') return money.usdNearest(Number(amount));
    const units = money.scaled(amount, MSAT_DECIMALS[currency as keyof typeof MSAT_DECIMALS]);
    if (units % 1000n !== 0n) throw new RangeError('a satoshi is not divided');
    return units;
  } catch {
    throw new UnservableRequest(400, `amount is not an amount of ${currency}`, 'amount');
  }
}

function priced(amount: string, currency: string, rate: string): { readonly msat: bigint; readonly value: PicoUsd } {
  const asked = amountIn(amount, currency);
  if (currency === 'USD') return { msat: msatFor(asked as PicoUsd, rate), value: asked as PicoUsd };
  return { msat: asked, value: worth(asked, rate) };
}

/** Reads an invoice before it is handed out: it is for this hash and amount, and can still be paid. Returns when it expires. */
function checkedExpiry(invoice: string, paymentHash: string, msat: bigint, now: string): string {
  const sections = sectionsOf(invoice);
  const seconds = Number(sections.get('timestamp')) + Number(sections.get('expiry') ?? 3600);
  const expiresAt = new Date(seconds * 1000).toISOString();
  const asked =
    sections.get('payment_hash') === paymentHash &&
    BigInt(String(sections.get('amount') ?? 0)) === msat &&
    expiresAt > now;
  if (asked) return expiresAt;
  throw new UpstreamFailure('upstream_error', 'The Lightning node made an invoice for something else than was asked');
}

function sectionsOf(invoice: string): ReadonlyMap<string, unknown> {
  try {
    const { sections } = decode(invoice);
    return new Map(sections.map((section) => [section.name, 'value' in section ? section.value : '']));
  } catch (cause) {
    throw new UpstreamFailure('upstream_error', 'The Lightning node made an invoice that cannot be read', { cause });
  }
}

/** Records a payment, credits it, and marks it as credited. Safe to repeat, and to break off anywhere. */
export class TopupPayments {
  constructor(
    private readonly topups: Topups,
    private readonly accounts: Accounts,
    private readonly rates: ExchangeRates,
    private readonly clock: Clock,
  ) {}

  /** @throws UpstreamFailure when a late payment needs a rate and there is none: ask again later */
  async record(topupId: string, expiresAt: string, { paymentHash, msat, paidAt }: LightningPayment): Promise<void> {
    const late = Date.parse(paidAt) > Date.parse(expiresAt) + GRACE_MS;
    const lateRate = late ? { lateRate: (await this.rates.usdPerBitcoin()).rate } : {};
    const data: Payment = { paymentId: paymentHash, msat, paidAt, ...lateRate, at: this.clock.now() };
    await this.topups.run(topupId, { type: 'RecordPayment', data });
  }

  async credit(topupId: string, payment: Extract<TopupEvent, { type: 'PaymentReceived' }>['data']): Promise<void> {
    const { accountId, method, paymentId } = payment;
    const booked = { amount: money.fromJson(payment.amount), bonus: money.fromJson(payment.bonus) };
    const at = this.clock.now();
    const credit = { creditId: paymentId, method, ...booked, at };
    await this.accounts.run(accountId, { type: 'AddCredit', data: credit }, { topup: topupId });
    await this.topups.run(topupId, { type: 'MarkCredited', data: { paymentId, at } });
  }
}
