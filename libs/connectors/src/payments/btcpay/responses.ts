/**
 * What BTCPay Server answers, read as that of somebody who may be mistaken or lie: nothing is credited that it does not
 * say in so many words. Decimals are JSON strings, times are Unix seconds.
 */
import type { BackendPayment } from '#application';
import type { CoinTerms, Destination } from '#domain';
import { type JsonObject, money } from '#kernel';
import { isBtcPayId } from './reference.ts';

/** An answer that cannot be true. The message goes on: what BTCPay Server answered … */
export class ImplausibleBtcPayResponseError extends Error {}

/** What was asked for. */
export interface RequestedInvoice {
  readonly coin: CoinTerms;
  readonly method: string;
  readonly units: bigint;
  readonly orderId: string;
  readonly speedPolicy: string;
}

const MAX_PAYMENTS = 10_000;

/** @returns the id of an invoice that is what was asked for @throws ImplausibleBtcPayResponseError */
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
  throw new ImplausibleBtcPayResponseError('is an invoice for something else than was asked');
}

/** @returns where an invoice that was just made is paid to @throws ImplausibleBtcPayResponseError */
export function parseDestination(
  response: unknown,
  kind: Destination['kind'],
  { coin, method, units }: RequestedInvoice,
): string {
  const { activated, currency, amount, destination } = parsePaymentMethod(response, method);
  const isAsRequested = activated === true && currency === coin.code && parseUnits(amount, coin) === units;
  if (isAsRequested && typeof destination === 'string' && DESTINATIONS[kind].test(destination)) return destination;
  throw new ImplausibleBtcPayResponseError('is to be paid in another way than was asked');
}

/** An invoice over Lightning is held against what was asked for where it is handed out; an address says nothing itself. */
const DESTINATIONS: Readonly<Record<Destination['kind'], RegExp>> = {
  bolt11: /^ln[a-z0-9]{50,4000}$/,
  address: /^(?!ln(bc|tb|sb))([a-z]+:)?[A-Za-z0-9]{25,150}$/,
  page: /^$/,
};

/** What is looked at. */
export interface PolledInvoice {
  readonly reference: string;
  readonly orderId: string;
  readonly method: string;
  readonly coin: CoinTerms;
}

/** An invoice of a list. */
export interface BtcPayInvoiceSummary {
  /** Whether anything has ever happened with it, as far as its status says so. */
  readonly hasActivity: boolean;
  /** Its payments that count; undefined when it needs a look of its own. */
  parsePayments(invoice: PolledInvoice): readonly BackendPayment[] | undefined;
}

/** Invoices of a list by their ids. @throws ImplausibleBtcPayResponseError */
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

/** All payments of an invoice; none of one that BTCPay does not know. @throws ImplausibleBtcPayResponseError */
export function parseInvoicePayments(response: unknown, invoice: PolledInvoice): readonly BackendPayment[] {
  if (response === undefined) return [];
  const { currency, payments } = parsePaymentMethod(response, invoice.method);
  if (currency !== invoice.coin.code) throw new ImplausibleBtcPayResponseError('is about another coin');
  const parsedPayments = parseList(payments).flatMap((entry) => parsePayment(parseObject(entry), invoice) ?? []);
  if (new Set(parsedPayments.map(({ id }) => id)).size < parsedPayments.length)
    throw new ImplausibleBtcPayResponseError('has a payment twice');
  return parsedPayments;
}

/** Its statuses: what counts, what may still count, and what was replaced or undone. */
const CONFIRMATIONS: Readonly<Record<string, BackendPayment['confirmations']>> = {
  Settled: 'final',
  Processing: 0,
  Invalid: 'lost',
};

/** An output without value can be made by anybody, and is no payment. */
function parsePayment(
  { id, value, status, receivedDate }: JsonObject,
  { reference, coin }: PolledInvoice,
): BackendPayment | undefined {
  const units = parseUnits(value, coin);
  const confirmations = Object.hasOwn(CONFIRMATIONS, String(status)) ? CONFIRMATIONS[String(status)] : undefined;
  const isTime = Number.isSafeInteger(receivedDate) && Number(receivedDate) > 0 && Number(receivedDate) < 1e11;
  const hasValidId = typeof id === 'string' && /^[\x21-\x7e]{1,200}$/.test(id);
  if (units === undefined || confirmations === undefined || !isTime || !hasValidId)
    throw new ImplausibleBtcPayResponseError('has a payment that cannot be read');
  if (units === 0n) return undefined;
  const receivedAt = new Date(Number(receivedDate) * 1000).toISOString();
  // A transaction can be valid on two chains, so its coin is part of the name, and not the method, which BTCPay has renamed.
  return { reference, id: `${coin.code}:${id}`, units, confirmations, receivedAt };
}

/** The one method of an invoice. */
function parsePaymentMethod(response: unknown, method: string): JsonObject {
  const [only, ...rest] = parseList(response).map(parseObject);
  if (only?.paymentMethodId === method && rest.length === 0) return only;
  throw new ImplausibleBtcPayResponseError('has other payment methods than were asked for');
}

/** A plain decimal of whole coins. @returns undefined when it is none, or finer than the coin */
function parseUnits(value: unknown, { decimals }: CoinTerms): bigint | undefined {
  if (typeof value !== 'string' || !/^\d{1,15}(\.\d{1,28})?$/.test(value)) return undefined;
  const [integer = '', fraction = ''] = value.replace(/(\.\d*?)0+$/, '$1').split('.');
  if (fraction.length > decimals) return undefined;
  return money.parseScaled(fraction === '' ? integer : `${integer}.${fraction}`, decimals);
}

function parseObject(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new ImplausibleBtcPayResponseError('has another shape');
}

function parseList(value: unknown): readonly unknown[] {
  if (Array.isArray(value) && value.length <= MAX_PAYMENTS) return value;
  throw new ImplausibleBtcPayResponseError('has another shape');
}
