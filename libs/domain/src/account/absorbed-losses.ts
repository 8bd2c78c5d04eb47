/**
 * What the house bears: calls that vendors invoice and nobody is charged for, and what an answer cost beyond its hold. However it
 * comes about, one account causes only so much of it in an hour. It is decided with the hold, so it holds for all gateways
 * together. What came too late for its hold, or was never stated, since a process or the store was away, counts for nobody: it
 * would lock out those who asked for most at that moment.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { Charge } from '../charge.ts';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';

const HOUR_MS = 60 * 60_000;
/** So much of what an account was charged may be lost on top, one part of so many: what is sold earns about as much. */
const MARGIN_DIVISOR = 20n;

/** What was borne for an account since an hour of its began, with a loss, and what it was charged meanwhile. */
export interface AbsorbedLosses {
  readonly since: Instant;
  readonly borne: PicoUsd;
  readonly charged: PicoUsd;
}

/** After a charge that was taken from a hold. */
export function addChargeToLosses(losses: AbsorbedLosses | undefined, charge: Charge, charged: PicoUsd, at: Instant) {
  const absorbed = calculateAbsorbed(charge, charged);
  return absorbed === ZERO_USD && losses === undefined ? undefined : addToLosses(losses, absorbed, charged, at);
}

/** After a charge that nobody pays. */
export function addLoss(losses: AbsorbedLosses | undefined, { cost }: Charge, at: Instant): AbsorbedLosses | undefined {
  return addToLosses(losses, money.parseJsonAmount(cost), ZERO_USD, at);
}

/**
 * @param maxLossPerHour what may be borne for an account in an hour, beside the part of what it was charged
 * @throws Rejection `too_much_borne`
 */
export function assertWithinLossLimit(losses: AbsorbedLosses | undefined, maxLossPerHour: PicoUsd, at: Instant): void {
  if (!losses || hasWindowEnded(losses, at) || losses.borne <= maxLossPerHour + losses.charged / MARGIN_DIVISOR) return;
  const message =
    'Requests of this account that came to nothing have cost too much within an hour, and no more are taken';
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

/** Of a charge: calls that are absorbed, and what the hold had no money for. */
function calculateAbsorbed({ items, price }: Charge, charged: PicoUsd): PicoUsd {
  const unpaid = money.max(money.subtract(money.parseJsonAmount(price), charged), ZERO_USD);
  return items.reduce((sum, { absorbed, cost }) => {
    return absorbed === undefined ? sum : money.add(sum, money.parseJsonAmount(cost));
  }, unpaid);
}
