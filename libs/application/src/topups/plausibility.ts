/** Limits what a payment backend can report: reports become events, which are stored permanently. */
import type { PicoUsd } from '#kernel';
import { UpstreamError } from '../errors.ts';
import type { BackendPayment, CreatedPayment } from './payment-backend.ts';

/** No payment has this many of the smallest unit of its coin. */
const MAX_UNITS = 10n ** 20n;
/** 10^30 pico-USD. No payment is worth this much, and a million of them still fit in every read model. */
const MAX_PICO_USD = 10n ** 30n;
/** Reference of an invoice, or id of a payment, a fee or a reversal. All known ids are far shorter. */
const ID = /^[\x20-\x7e]{1,300}$/;
const MAX_REASON_LENGTH = 300;
/** Maximum number of fees and reversals of one payment: each becomes an event. */
const MAX_CHANGES = 1_000;
/** A dispute of a small payment costs a multiple of the payment. */
const MAX_CHANGE_FACTOR = 10_000n;
/** The URL of a payment page is the longest destination. */
const MAX_DESTINATION_LENGTH = 8_192;
/** Four digits for the year, so that instants can be compared as texts. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** @throws UpstreamError if an amount, an id, a reason, the time, or the number of fees and reversals is implausible */
export function assertPlausiblePayment(payment: BackendPayment): void {
  const { id, sourceId = id, units, receivedAt, fees = [], reversals = [] } = payment;
  const changes = [...fees, ...reversals];
  const ids = [id, sourceId, ...changes.map((change) => change.id)];
  const maxChange = units * MAX_CHANGE_FACTOR;
  const isWithinLimits =
    units >= 0n &&
    units < MAX_UNITS &&
    changes.every((change) => change.units <= maxChange && change.units >= -maxChange);
  const isShort = changes.length <= MAX_CHANGES && changes.every(({ why }) => why.length <= MAX_REASON_LENGTH);
  if (isWithinLimits && isShort && ids.every((reportedId) => ID.test(reportedId)) && INSTANT.test(receivedAt)) return;
  throw new UpstreamError('upstream_error', 'The payment backend reported an implausible payment');
}

/** Returns the amount if a payment can be worth it. @throws UpstreamError if it is implausibly high */
export function toPlausibleUsd(amount: PicoUsd): PicoUsd {
  if (amount < MAX_PICO_USD) return amount;
  throw new UpstreamError('upstream_error', 'The value of a payment is implausibly high');
}

/** @throws UpstreamError if the reference is not a valid id, or the destination is too long */
export function assertPlausibleInvoice({ reference, destination }: CreatedPayment): void {
  if (ID.test(reference) && destination.value.length <= MAX_DESTINATION_LENGTH) return;
  throw new UpstreamError('upstream_error', 'The payment backend created an implausible invoice');
}

/**
 * Whether a payment has no value and is ignored: anyone can create an output without value. The amount of a lost
 * payment may be unknown, so it is not ignored.
 */
export function hasNoValue({ units, confirmations }: BackendPayment): boolean {
  return units === 0n && confirmations !== 'lost';
}
