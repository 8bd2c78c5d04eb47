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

/** Items of charges for what was generated beyond the hold, before the provider had stopped. */
const UNHELD_CODE = 'hold_used_up';

/** The losses and the charges of an account in one hour. */
export interface AbsorbedLosses {
  /** Start of the hour: the first loss after the previous hour has ended. */
  readonly since: Instant;
  /** Losses without `unheld`. */
  readonly borne: PicoUsd;
  /** The part of prices that exceeded the hold, and the cost of what was generated beyond the hold. */
  readonly unheld: PicoUsd;
  readonly charged: PicoUsd;
}

type Loss = Pick<AbsorbedLosses, 'borne' | 'unheld'>;

const NO_LOSS: Loss = { borne: ZERO_USD, unheld: ZERO_USD };

/** Returns the losses after a charge was settled from its hold. */
export function addChargeToLosses(losses: AbsorbedLosses | undefined, charge: Charge, charged: PicoUsd, at: Instant) {
  const loss = calculateLoss(charge, charged);
  return loss === NO_LOSS && losses === undefined ? undefined : addToLosses(losses, loss, charged, at);
}

/** Returns the losses after a charge that no customer pays. */
export function addLoss(losses: AbsorbedLosses | undefined, { cost }: Charge, at: Instant): AbsorbedLosses | undefined {
  return addToLosses(losses, { borne: money.parseJsonAmount(cost), unheld: ZERO_USD }, ZERO_USD, at);
}

/** Limits of the losses of an account per hour. */
interface LossLimits {
  /** A part of the charges is added to it. */
  readonly perHour: PicoUsd;
  /**
   * Losses beyond the holds count only if they exceed this amount: honest customers cause them too, when their money is
   * used up.
   */
  readonly tolerated: PicoUsd;
}

/** Returns the losses beyond the holds within the current hour. */
export function getUnheldLoss(losses: AbsorbedLosses | undefined, at: Instant): PicoUsd {
  return losses && !hasWindowEnded(losses, at) ? losses.unheld : ZERO_USD;
}

/** Returns how much more the operator may lose for an account within the hour; negative if the limit is exceeded. */
export function calculateRemainingLoss(
  losses: AbsorbedLosses | undefined,
  { perHour, tolerated }: LossLimits,
  at: Instant,
): PicoUsd {
  if (!losses || hasWindowEnded(losses, at)) return perHour;
  const countedLoss = money.add(losses.borne, money.max(money.subtract(losses.unheld, tolerated)));
  return (perHour + losses.charged / MARGIN_DIVISOR - countedLoss) as PicoUsd;
}

/** @throws Rejection `too_much_borne` until the end of the hour, if the losses exceed the limit */
export function assertWithinLossLimit(losses: AbsorbedLosses | undefined, limits: LossLimits, at: Instant): void {
  if (!losses || calculateRemainingLoss(losses, limits, at) >= ZERO_USD) return;
  const message = 'Requests of this account have exceeded the hourly limit of uncharged costs; retry later';
  reject('too_much_borne', message, { until: new Date(getEndMs(losses)).toISOString() });
}

function addToLosses(
  losses: AbsorbedLosses | undefined,
  { borne, unheld }: Loss,
  charged: PicoUsd,
  at: Instant,
): AbsorbedLosses | undefined {
  if (losses && !hasWindowEnded(losses, at)) {
    return {
      ...losses,
      borne: money.add(losses.borne, borne),
      unheld: money.add(losses.unheld, unheld),
      charged: money.add(losses.charged, charged),
    };
  }
  return borne === ZERO_USD && unheld === ZERO_USD ? undefined : { since: at, borne, unheld, charged };
}

function hasWindowEnded(losses: AbsorbedLosses, at: Instant): boolean {
  return Date.parse(at) >= getEndMs(losses);
}

function getEndMs({ since }: AbsorbedLosses): number {
  return Date.parse(since) + HOUR_MS;
}

/** Returns the loss in a settled charge: the part of the price that was not charged, and its absorbed items. */
function calculateLoss({ items, price }: Charge, charged: PicoUsd): Loss {
  let [borne, unheld] = [ZERO_USD, money.max(money.subtract(money.parseJsonAmount(price), charged))];
  for (const { absorbed, cost } of items) {
    if (absorbed === UNHELD_CODE) unheld = money.add(unheld, money.parseJsonAmount(cost));
    else if (absorbed !== undefined) borne = money.add(borne, money.parseJsonAmount(cost));
  }
  return borne === ZERO_USD && unheld === ZERO_USD ? NO_LOSS : { borne, unheld };
}
