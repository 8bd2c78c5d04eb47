/**
 * The losses that the operator absorbs for an account: calls that providers invoice but no customer pays, and the part
 * of a price that exceeds its hold. The loss per account and hour is limited. The limit is checked in the decision that
 * places a hold, so it applies to all gateways together.
 *
 * A charge that arrives after its hold has expired does not count, and neither does usage that was never recorded. The
 * account does not cause these losses: a process or the store failed. Counting them would lock out the most active
 * accounts.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { Charge } from '../charge.ts';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';

const HOUR_MS = 60 * 60_000;
/** The loss limit grows by 1/20 of what the account was charged in the hour, which is about the margin earned on it. */
const MARGIN_DIVISOR = 20n;

/** The losses and the charges of an account in one hour. */
export interface AbsorbedLosses {
  /** Start of the hour: the first loss after the previous hour has ended. */
  readonly since: Instant;
  readonly borne: PicoUsd;
  readonly charged: PicoUsd;
}

/** Returns the losses after a charge was settled from its hold. */
export function addChargeToLosses(losses: AbsorbedLosses | undefined, charge: Charge, charged: PicoUsd, at: Instant) {
  const absorbed = calculateAbsorbed(charge, charged);
  return absorbed === ZERO_USD && losses === undefined ? undefined : addToLosses(losses, absorbed, charged, at);
}

/** Returns the losses after a charge that no customer pays. */
export function addLoss(losses: AbsorbedLosses | undefined, { cost }: Charge, at: Instant): AbsorbedLosses | undefined {
  return addToLosses(losses, money.parseJsonAmount(cost), ZERO_USD, at);
}

/**
 * @param maxLossPerHour limit per account and hour, to which a part of the charges is added
 * @throws Rejection `too_much_borne` until the end of the hour, if the losses exceed the limit
 */
export function assertWithinLossLimit(losses: AbsorbedLosses | undefined, maxLossPerHour: PicoUsd, at: Instant): void {
  if (!losses || hasWindowEnded(losses, at) || losses.borne <= maxLossPerHour + losses.charged / MARGIN_DIVISOR) return;
  const message = 'Requests of this account have exceeded the hourly limit of uncharged costs; retry later';
  reject('too_much_borne', message, { until: new Date(getEndMs(losses)).toISOString() });
}

function addToLosses(
  losses: AbsorbedLosses | undefined,
  absorbed: PicoUsd,
  charged: PicoUsd,
  at: Instant,
): AbsorbedLosses | undefined {
  if (losses && !hasWindowEnded(losses, at))
    return { ...losses, borne: money.add(losses.borne, absorbed), charged: money.add(losses.charged, charged) };
  return absorbed === ZERO_USD ? undefined : { since: at, borne: absorbed, charged };
}

function hasWindowEnded(losses: AbsorbedLosses, at: Instant): boolean {
  return Date.parse(at) >= getEndMs(losses);
}

function getEndMs({ since }: AbsorbedLosses): number {
  return Date.parse(since) + HOUR_MS;
}

/**
 * Returns the loss in a settled charge: the cost of its absorbed items, and the part of the price that was not charged.
 */
function calculateAbsorbed({ items, price }: Charge, charged: PicoUsd): PicoUsd {
  const unpaid = money.max(money.subtract(money.parseJsonAmount(price), charged), ZERO_USD);
  return items.reduce((sum, { absorbed, cost }) => {
    return absorbed === undefined ? sum : money.add(sum, money.parseJsonAmount(cost));
  }, unpaid);
}
