/** Creates a top-up: requests a payment from the payment backend of its method, and stores the result as an event. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import {
  type CoinTerms,
  convertToUnits,
  convertToUsd,
  getAmountRange,
  type InvoiceAllowed,
  type InvoiceIssued,
  type PaymentMethod,
  parseCoinAmount,
  type RateUsed,
} from '#domain';
import { type Cause, money, type PicoUsd, type Randomness, type Runtime } from '#kernel';
import { Clock } from '../clock.ts';
import { InvalidRequestError, isCertainRejection, UpstreamError } from '../errors.ts';
import { generateBase62 } from '../secrets.ts';
import { Streams } from '../streams.ts';
import { ExchangeRates } from './exchange-rates.ts';
import { verifyInvoice } from './lightning-invoice.ts';
import { type CreatedPayment, createPaymentAtFirst, type PaymentRequest } from './payment-backend.ts';
import { type AvailablePaymentMethod, PaymentMethods } from './payment-methods.ts';
import { assertPlausibleInvoice } from './plausibility.ts';

/** 22 base62 characters: the id alone gives access to the status of a top-up, so it must not be guessable. */
export const TOPUP_ID_LENGTH = 22;

export function generateTopupId(randomness: Pick<Randomness, 'generateBytes'>): string {
  return generateBase62(randomness, TOPUP_ID_LENGTH);
}

/** The customer's wallet may display this text. */
const MEMO = 'Countinghouse top-up';

export interface CreatedTopup {
  readonly topupId: string;
  readonly invoice: InvoiceIssued['data'];
}

/** An amount as the customer requested it. */
export interface RequestedAmount {
  readonly amount: string;
  readonly currency: string;
}

export interface TopupParams {
  readonly method: string;
  readonly requested: RequestedAmount;
  /** Where a page of the payment backend sends the customer back to. */
  readonly returnUrl?: string;
}

export class CreateTopup extends Command<CreatedTopup> {
  constructor(
    readonly accountId: string,
    readonly params: TopupParams,
    readonly cause: Cause,
    /** Generated if omitted. */
    readonly topupId?: string,
  ) {
    super();
  }
}

export interface CreateTopupDependencies {
  readonly streams: Pick<Streams, 'topups' | 'openInvoices'>;
  readonly paymentMethods: PaymentMethods;
  readonly rates: ExchangeRates;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

@CommandHandler(CreateTopup)
export class CreateTopupHandler implements ICommandHandler<CreateTopup> {
  constructor(private readonly dependencies: CreateTopupDependencies) {}

  /**
   * @throws InvalidRequestError if the method or the amount is invalid; UpstreamError if there is no exchange rate or
   *   no valid invoice; Rejection if the account has too many open invoices
   */
  async execute({ accountId, params, cause, topupId: givenId }: CreateTopup): Promise<CreatedTopup> {
    const { streams, paymentMethods, rates, clock, runtime } = this.dependencies;
    const topupId = givenId ?? generateTopupId(runtime);
    const { method, requested, ...options } = params;
    const { terms, coin, backends } = this.getMethod(method);
    assertWithinLimits(terms, coin, requested);
    const rate = await rates.fetchUsdRate(coin.code);
    assertWithinLimits(terms, coin, requested, rate.value);
    const priced = convertRequestedAmount(coin, requested, rate);
    const at = clock.now();
    const { destination: kind, bonus, confirmations, expiryMinutes } = terms;
    const expirySeconds = expiryMinutes * 60;
    const paymentRequest = {
      topupId,
      coin,
      kind,
      units: priced.units,
      memo: MEMO,
      expirySeconds,
      confirmations,
      ...options,
    };
    const isAllowedNow = await this.allowInvoice(
      { accountId, topupId, expiresAt: toExpiry(paymentRequest, at), at },
      cause,
    );
    const { lightningTimeoutMs } = paymentMethods;
    const timeout = { lightningTimeoutMs, timers: runtime };
    const { backend, payment } = await createPaymentAtFirst(backends, paymentRequest, timeout).catch(
      async (error: unknown) => {
        // An earlier attempt with the same id may have created an invoice.
        if (isAllowedNow && error instanceof UpstreamError && isCertainRejection(error))
          await this.dropInvoice(accountId, topupId, cause);
        throw error;
      },
    );
    assertPlausibleInvoice(payment);
    if (payment.destination.kind !== kind)
      throw new UpstreamError('upstream_error', `${backend.name} created no ${kind}`);
    const data: InvoiceIssued['data'] = {
      accountId,
      method: terms.method,
      coin: coin.code,
      requested,
      usd: money.toJsonAmount(priced.value),
      units: priced.units.toString(),
      rate,
      backend: backend.name,
      reference: payment.reference,
      destination: payment.destination,
      bonusPercent: bonus?.percent ?? 0,
      confirmations,
      expiresAt: getInvoiceExpiry(payment, paymentRequest, at),
      at,
    };
    await streams.topups.run(topupId, { type: 'IssueInvoice', data }, { ...cause, correlationId: topupId });
    return { topupId, invoice: data };
  }

  /**
   * Must run before the payment backend is called: an invoice that the backend has created can be paid.
   * @returns false if the invoice was allowed before
   */
  private async allowInvoice(data: InvoiceAllowed['data'], cause: Cause): Promise<boolean> {
    const { streams, paymentMethods } = this.dependencies;
    const { maxOpenInvoices } = paymentMethods;
    const { events } = await streams.openInvoices.run(
      data.accountId,
      { type: 'AllowInvoice', data: { ...data, maxOpenInvoices } },
      cause,
    );
    return events.length > 0;
  }

  /** If the event cannot be stored, the invoice counts until its expiry; the caller gets the backend's failure. */
  private async dropInvoice(accountId: string, topupId: string, cause: Cause): Promise<void> {
    const { streams, clock } = this.dependencies;
    const data = { topupId, at: clock.now() };
    await streams.openInvoices.run(accountId, { type: 'DropInvoice', data }, cause).catch(() => {}); // see above
  }

  private getMethod(name: string): AvailablePaymentMethod {
    const { paymentMethods } = this.dependencies;
    const method = paymentMethods.findMethod(name);
    if (method) return method;
    throw createMethodError(name, paymentMethods);
  }
}

export const NO_BACKEND_MESSAGE =
  'This installation has no payment backend and offers no top-ups: request credit from its operator';

/** Creates the error for a payment method that is not available here. */
export function createMethodError(name: string, { hasBackend }: PaymentMethods): InvalidRequestError {
  const message = hasBackend ? `Payment method "${name}" not found` : NO_BACKEND_MESSAGE;
  return new InvalidRequestError(404, message, 'method');
}

/**
 * @param rate USD for one coin; without it, limits that depend on it are not checked
 * @throws InvalidRequestError 400 if the method does not support the currency, or the amount is invalid or outside the
 *   limits
 */
function assertWithinLimits(
  terms: PaymentMethod,
  coin: CoinTerms,
  { amount, currency }: RequestedAmount,
  rate?: string,
): void {
  const { currencies, limits } = terms;
  if (!currencies.includes(currency)) {
    throw new InvalidRequestError(400, `currency must be one of ${currencies.join(', ')}`, 'currency');
  }
  const requested = parseAmount(amount, currency, coin);
  const range = getAmountRange(terms, currency, coin, rate);
  if (!range) return;
  const { min, max } = range;
  const [minAmount, maxAmount] = [parseAmount(min, currency, coin), parseAmount(max, currency, coin)];
  if (requested >= minAmount && requested <= maxAmount) return;
  const usd = Object.hasOwn(limits, currency) ? undefined : limits.USD;
  const origin = usd ? ` (${usd.min} to ${usd.max} USD at the current exchange rate)` : '';
  throw new InvalidRequestError(400, `amount must be from ${min} to ${max} ${currency}${origin}`, 'amount');
}

/** Returns units of the coin if the currency is one of its own, else pico-USD. */
function parseAmount(amount: string, currency: string, coin: CoinTerms): bigint {
  try {
    return isCoinCurrency(currency, coin)
      ? parseCoinAmount(amount, currency, coin)
      : money.roundToPicoUsd(Number(amount));
  } catch {
    throw new InvalidRequestError(400, `amount must be a valid amount in ${currency}`, 'amount');
  }
}

function isCoinCurrency(currency: string, { currencies }: CoinTerms): boolean {
  return Object.hasOwn(currencies, currency);
}

/** Returns the units to be paid, and their value. */
function convertRequestedAmount(coin: CoinTerms, { amount, currency }: RequestedAmount, rate: RateUsed) {
  const requested = parseAmount(amount, currency, coin);
  if (isCoinCurrency(currency, coin)) return { units: requested, value: convertToUsd(requested, coin, rate.value) };
  return { units: convertToUnits(requested as PicoUsd, coin, rate.value), value: requested as PicoUsd };
}

/**
 * Returns when a payment request expires. A Lightning invoice contains its expiry, and is verified against the request.
 */
function getInvoiceExpiry(
  { destination, paymentHash }: CreatedPayment,
  { units, expirySeconds }: PaymentRequest,
  now: string,
): string {
  if (destination.kind !== 'bolt11') return toExpiry({ expirySeconds }, now);
  const expectedHash = paymentHash === undefined ? {} : { paymentHash };
  return verifyInvoice(destination.value, { msat: units, ...expectedHash, now }).expiresAt;
}

function toExpiry({ expirySeconds }: Pick<PaymentRequest, 'expirySeconds'>, now: string): string {
  return new Date(Date.parse(now) + expirySeconds * 1000).toISOString();
}
