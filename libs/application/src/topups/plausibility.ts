/** What a back end says of a payment becomes a fact for ever, so it is bounded here, whichever back end says it. */
import type { PicoUsd } from '#kernel';
import { UpstreamError } from '../errors.ts';
import type { BackendPayment, CreatedPayment } from './payment-backend.ts';

/** No coin has as many of its smallest unit. */
const MAX_UNITS = 10n ** 20n;
/** No payment is worth as much, and a million of them still fit in every read model: 10^30 pico-USD. */
const MAX_PICO_USD = 10n ** 30n;
/** What a back end calls a payment, a fee or a refund: all known ones are far shorter. */
const ID = /^[\x20-\x7e]{1,300}$/;
const MAX_REASON_LENGTH = 300;
/** Fees and refunds of one payment: each becomes a fact. */
const MAX_CHANGES = 1_000;
/** A dispute of a small payment costs a multiple of it. */
const MAX_CHANGE_FACTOR = 10_000n;
/** A page's address is the longest that any has. */
const MAX_DESTINATION_LENGTH = 8_192;
/** With the year in four digits, so that times are compared as they are written. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** @throws UpstreamError when it is of an amount that cannot be, of a time that is none, or has no proper name */
export function assertPlausiblePayment({ id, units, receivedAt, fees = [], reversals = [] }: BackendPayment): void {
  const changes = [...fees, ...reversals];
  const ids = [id, ...changes.map((change) => change.id)];
  const maxChange = units * MAX_CHANGE_FACTOR;
  const isWithinLimits =
    units >= 0n &&
    units < MAX_UNITS &&
    changes.every((change) => change.units <= maxChange && change.units >= -maxChange);
  const isShort = changes.length <= MAX_CHANGES && changes.every(({ why }) => why.length <= MAX_REASON_LENGTH);
  if (isWithinLimits && isShort && ids.every((reportedId) => ID.test(reportedId)) && INSTANT.test(receivedAt)) return;
  throw new UpstreamError('upstream_error', 'A back end reported a payment that cannot be');
}

/** @throws UpstreamError when a payment is worth more, at the rate of its time, than any can be */
export function toPlausibleUsd(amount: PicoUsd): PicoUsd {
  if (amount < MAX_PICO_USD) return amount;
  throw new UpstreamError('upstream_error', 'A payment is worth more than any can be');
}

/** @throws UpstreamError when what a back end made to be paid has no proper name, or a destination without end */
export function assertPlausibleInvoice({ reference, destination }: CreatedPayment): void {
  if (ID.test(reference) && destination.value.length <= MAX_DESTINATION_LENGTH) return;
  throw new UpstreamError('upstream_error', 'A back end made something to be paid that cannot be');
}

/** An output without value can be made by anybody, and is no payment; of one that is lost the amount may not be known. */
export function hasNoValue({ units, confirmations }: BackendPayment): boolean {
  return units === 0n && confirmations !== 'lost';
}
