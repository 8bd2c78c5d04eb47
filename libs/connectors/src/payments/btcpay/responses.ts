/**
 * Parses responses of BTCPay Server without trusting them: only payments with complete and plausible data are credited.
 * Decimals are JSON strings, times are Unix seconds.
 */
import type { BackendPayment } from '#application';
import type { CoinTerms, Destination } from '#domain';
import { type JsonObject, money } from '#kernel';
import { isBtcPayId } from './reference.ts';

/** An implausible response. The message continues "The response of BTCPay Server …". */
export class ImplausibleBtcPayResponseError extends Error {}

export interface RequestedInvoice {
  readonly coin: CoinTerms;
  readonly method: string;
  readonly units: bigint;
  readonly orderId: string;
  readonly speedPolicy: string;
}

const MAX_PAYMENTS = 10_000;

/** Returns the id of a new invoice. @throws ImplausibleBtcPayResponseError unless it has exactly the requested terms */
export function parseMatchingInvoiceId(
  response: unknown,
  { coin, method, units, orderId, speedPolicy }: RequestedInvoice,
): string {
  const { id, currency, amount, type, metadata, checkout } = parseObject(response);
  const { paymentMethods, paymentTolerance, speedPolicy: policy } = parseObject(checkout);
  const isForOrder = currency === coin.code && type === 'Standard' && parseObject(metadata).orderId === orderId;
  const isMethod = Array.isArray(paymentMethods) && paymentMethods.length === 1 && paymentMethods[0] === method;
  const isExact = parseUnits(amount, coin) === units && paymentTolerance === 0 && policy === speedPolicy;
  if (isBtcPayId(id) && isForOrder && isMethod && isExact) return id;
  throw new ImplausibleBtcPayResponseError('is an invoice with other terms than requested');
}

/** Returns the destination of a new invoice. @throws ImplausibleBtcPayResponseError unless valid and as requested */
export function parseDestination(
  response: unknown,
  kind: Destination['kind'],
  { coin, method, units }: RequestedInvoice,
): string {
  const { activated, currency, amount, destination } = parsePaymentMethod(response, method);
  const isAsRequested = activated === true && currency === coin.code && parseUnits(amount, coin) === units;
  if (isAsRequested && typeof destination === 'string' && DESTINATIONS[kind].test(destination)) return destination;
  throw new ImplausibleBtcPayResponseError('has no valid destination for the requested coin and amount');
}

/** Only the format is checked here. Lightning invoices are compared with the request before a customer gets them. */
const DESTINATIONS: Readonly<Record<Destination['kind'], RegExp>> = {
  bolt11: /^ln[a-z0-9]{50,4000}$/,
  address: /^(?!ln(bc|tb|sb))([a-z]+:)?[A-Za-z0-9]{25,150}$/,
  page: /^$/,
};

export interface PolledInvoice {
  readonly reference: string;
  readonly orderId: string;
  readonly method: string;
  readonly coin: CoinTerms;
}

/** An invoice in a list. */
export interface BtcPayInvoiceSummary {
  /** Whether its status shows that it may have payments. */
  readonly hasActivity: boolean;
  /** Returns its payments; undefined if the list does not report them as expected, so the invoice must be fetched. */
  parsePayments(invoice: PolledInvoice): readonly BackendPayment[] | undefined;
}

/** Returns the invoices of a list by id. @throws ImplausibleBtcPayResponseError unless it is a list of objects */
export function parseInvoiceList(response: unknown): ReadonlyMap<string, BtcPayInvoiceSummary> {
  return new Map(
    parseList(response).map((entry) => {
      const { id, status, additionalStatus, metadata, paymentMethods } = parseObject(entry);
      const isTouched = (status !== 'New' && status !== 'Expired') || additionalStatus !== 'None';
      return [
        String(id),
        { hasActivity: isTouched, parsePayments: (invoice) => tryParsePayments(paymentMethods, metadata, invoice) },
      ];
    }),
  );
}

function tryParsePayments(
  methods: unknown,
  metadata: unknown,
  invoice: PolledInvoice,
): readonly BackendPayment[] | undefined {
  try {
    return parseObject(metadata).orderId === invoice.orderId
      ? parseInvoicePayments(methods ?? null, invoice)
      : undefined;
  } catch (error) {
    if (error instanceof ImplausibleBtcPayResponseError) return undefined;
    throw error;
  }
}

/**
 * Returns the payments of an invoice except those without value; none for an unknown invoice.
 * @throws ImplausibleBtcPayResponseError if the payment method, the coin or a payment is implausible
 */
export function parseInvoicePayments(response: unknown, invoice: PolledInvoice): readonly BackendPayment[] {
  if (response === undefined) return [];
  const { currency, payments } = parsePaymentMethod(response, invoice.method);
  if (currency !== invoice.coin.code) throw new ImplausibleBtcPayResponseError('is for another coin');
  const parsedPayments = parseList(payments).flatMap((entry) => parsePayment(parseObject(entry), invoice) ?? []);
  if (new Set(parsedPayments.map(({ id }) => id)).size < parsedPayments.length)
    throw new ImplausibleBtcPayResponseError('has a duplicate payment');
  return parsedPayments;
}

/** Confirmations by BTCPay's status of a payment: settled, still waiting, and replaced or rolled back. */
const CONFIRMATIONS: Readonly<Record<string, BackendPayment['confirmations']>> = {
  Settled: 'final',
  Processing: 0,
  Invalid: 'lost',
};

/** Returns undefined for an output without value, which anyone can create. */
function parsePayment(
  { id, value, status, receivedDate }: JsonObject,
  { reference, coin }: PolledInvoice,
): BackendPayment | undefined {
  const units = parseUnits(value, coin);
  const confirmations = Object.hasOwn(CONFIRMATIONS, String(status)) ? CONFIRMATIONS[String(status)] : undefined;
  const isTime = Number.isSafeInteger(receivedDate) && Number(receivedDate) > 0 && Number(receivedDate) < 1e11;
  const hasValidId = typeof id === 'string' && /^[\x21-\x7e]{1,200}$/.test(id);
  if (units === undefined || confirmations === undefined || !isTime || !hasValidId)
    throw new ImplausibleBtcPayResponseError('has an unreadable payment');
  if (units === 0n) return undefined;
  const receivedAt = new Date(Number(receivedDate) * 1000).toISOString();
  // The id includes the coin, because a transaction can be valid on two chains. It does not include the payment method,
  // because BTCPay has renamed methods before.
  return { reference, id: `${coin.code}:${id}`, units, confirmations, receivedAt };
}

/**
 * Returns the only payment method of an invoice.
 * @throws ImplausibleBtcPayResponseError if it is not `method`, or there are others
 */
function parsePaymentMethod(response: unknown, method: string): JsonObject {
  const [only, ...rest] = parseList(response).map(parseObject);
  if (only?.paymentMethodId === method && rest.length === 0) return only;
  throw new ImplausibleBtcPayResponseError('has other payment methods than requested');
}

/**
 * Parses a decimal number of coins.
 * @returns undefined for another format, or for more decimals than the coin has, not counting zeros at the end
 */
function parseUnits(value: unknown, { decimals }: CoinTerms): bigint | undefined {
  if (typeof value !== 'string' || !/^\d{1,15}(\.\d{1,28})?$/.test(value)) return undefined;
  const [integer = '', fraction = ''] = value.replace(/(\.\d*?)0+$/, '$1').split('.');
  if (fraction.length > decimals) return undefined;
  return money.parseScaled(fraction === '' ? integer : `${integer}.${fraction}`, decimals);
}

function parseObject(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new ImplausibleBtcPayResponseError('has an unexpected format');
}

function parseList(value: unknown): readonly unknown[] {
  if (Array.isArray(value) && value.length <= MAX_PAYMENTS) return value;
  throw new ImplausibleBtcPayResponseError('has an unexpected format');
}
