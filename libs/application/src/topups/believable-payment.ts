/** What a back end says of a payment becomes a fact for ever, so it is bounded here, whichever back end says it. */
import { UpstreamFailure } from '../failures.ts';
import type { BackendPayment } from './payment-backend.ts';

/** No coin has as many of its smallest unit, and what is worth as much still fits in every read model. */
const MAX_UNITS = 10n ** 20n;
/** What a back end calls a payment, a fee or a refund: all known ones are far shorter. */
const ID = /^[\x20-\x7e]{1,300}$/;
/** With the year in four digits, so that times are compared as they are written. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** @throws UpstreamFailure when it is of an amount that cannot be, of a time that is none, or has no proper name */
export function assertBelievable({ id, units, receivedAt, fees = [], reversals = [] }: BackendPayment): void {
  const amounts = [units, ...[...fees, ...reversals].map((change) => change.units)];
  const ids = [id, ...[...fees, ...reversals].map((change) => change.id)];
  const isBounded = units >= 0n && amounts.every((each) => each < MAX_UNITS && each > -MAX_UNITS);
  if (isBounded && ids.every((each) => ID.test(each)) && INSTANT.test(receivedAt)) return;
  throw new UpstreamFailure('upstream_error', 'A back end reported a payment that cannot be');
}

/** An output without value can be made by anybody, and is no payment; of one that is lost the amount may not be known. */
export function isOfNothing({ units, confirmations }: BackendPayment): boolean {
  return units === 0n && confirmations !== 'lost';
}
