import { Map as ImmutableMap } from 'immutable';
import { money, type PicoUsd, throwUnknownEvent, ZERO_USD } from '#kernel';
import type { ChallengeEvent, ChallengeIssued, ChallengePaid, FundsHeld, Instant, PaymentId } from '../events.ts';
import {
  getHoldResolution,
  type Holds,
  markAbsorbed,
  markReversed,
  NO_RECENT_IDS,
  type OpenHold,
  REQUEST_ERROR_CODES,
  removeHold,
  transferHold,
} from '../holds.ts';

/** Maximum number of times that a proof is accepted, because each attempt can cost the operator something. */
const MAX_CLAIMS = 100;
/** Maximum number of attempts that fail because of the request itself. */
const MAX_REJECTIONS = 3;

export interface ChallengeState extends Holds {
  readonly issued: ChallengeIssued['data'] | undefined;
  readonly paid: ChallengePaid['data'] | undefined;
  /** The total received amount, in the coin's smallest unit. */
  readonly units: bigint;
  /** Ids of the fees that the payment backend has deducted. */
  readonly fees: readonly string[];
  /** The amount that is neither held, charged nor forfeited; the operator owes it to the payer. */
  readonly available: PicoUsd;
  readonly charged: PicoUsd;
  readonly forfeited: PicoUsd;
  /** Number of times that its proof was accepted. */
  readonly claims: number;
  /** Number of times that the request was served. */
  readonly served: number;
  /** Number of times that the request failed because of the request itself. */
  readonly rejections: number;
  /**
   * What providers invoice for attempts that failed and were not charged; the operator absorbs it. A failure of a
   * process or of the store does not count, because the payer did not cause it.
   */
  readonly absorbed: PicoUsd;
}

export const INITIAL_CHALLENGE: ChallengeState = {
  issued: undefined,
  paid: undefined,
  units: 0n,
  fees: [],
  available: ZERO_USD,
  charged: ZERO_USD,
  forfeited: ZERO_USD,
  claims: 0,
  served: 0,
  rejections: 0,
  absorbed: ZERO_USD,
  holds: ImmutableMap(),
  resolved: NO_RECENT_IDS,
  expired: NO_RECENT_IDS,
};

/**
 * Returns the id of the payment for a challenge. The proof reveals it: Lightning backends identify a payment by its hash.
 */
export function toChallengePayment({
  backend,
  paymentHash,
}: Pick<ChallengeIssued['data'], 'backend' | 'paymentHash'>): PaymentId {
  return { backend, id: paymentHash };
}

/** `lapsed`: paid, but no longer usable. `exhausted`: paid, but no further attempt is allowed. */
export type ChallengePhase =
  | 'none'
  | 'issued'
  | 'expired'
  | 'paid'
  | 'running'
  | 'used'
  | 'exhausted'
  | 'lapsed'
  | 'forfeited';

export function getChallengePhase(challenge: ChallengeState, now: Instant): ChallengePhase {
  const { issued, paid, holds, served, forfeited } = challenge;
  if (!issued) return 'none';
  if (!paid) return now < issued.expiresAt ? 'issued' : 'expired';
  if (holds.size > 0) return 'running';
  if (forfeited > 0n) return 'forfeited';
  if (served > 0) return 'used';
  if (now > issued.usableUntil) return 'lapsed';
  return isExhausted(challenge) ? 'exhausted' : 'paid';
}

/** Whether no further attempt is allowed: there were too many, or the operator has absorbed as much as the price. */
export function isExhausted({ claims, rejections, absorbed, issued }: ChallengeState): boolean {
  const hasAbsorbedPrice = issued !== undefined && absorbed > 0n && absorbed >= money.parseJsonAmount(issued.price);
  return claims >= MAX_CLAIMS || rejections >= MAX_REJECTIONS || hasAbsorbedPrice;
}

export function evolveChallenge(challenge: ChallengeState, event: ChallengeEvent): ChallengeState {
  switch (event.type) {
    case 'ChallengeIssued':
      return { ...challenge, issued: event.data };
    case 'ChallengePaid': {
      const { price, units } = event.data;
      return { ...addReceived(challenge, price, units), paid: event.data };
    }
    case 'ChallengeOverpaid':
      return addReceived(challenge, event.data.amount, event.data.units);
    case 'ChallengeForfeited': {
      const amount = money.parseJsonAmount(event.data.amount);
      const forfeited = money.add(challenge.forfeited, amount);
      return { ...challenge, available: money.subtract(challenge.available, amount), forfeited };
    }
    case 'PaymentFeeCharged':
      return { ...challenge, fees: [...challenge.fees, event.data.feeId] };
    case 'FundsHeld':
      return applyHold(challenge, event.data);
    case 'HoldKept':
      return { ...challenge, ...transferHold(event.data, challenge) };
    case 'HoldSettled': {
      const { holdId, charged } = event.data;
      const ended = applyHoldEnd(challenge, holdId, 'settled', money.parseJsonAmount(charged));
      return { ...ended, served: ended.served + 1 };
    }
    case 'HoldReleased': {
      const { holdId, errorCode } = event.data;
      const ended = applyHoldEnd(challenge, holdId, 'released', ZERO_USD);
      return REQUEST_ERROR_CODES.has(errorCode) ? { ...ended, rejections: ended.rejections + 1 } : ended;
    }
    case 'HoldExpired':
      return applyHoldEnd(challenge, event.data.holdId, 'expired', ZERO_USD);
    case 'ChargeAbsorbed': {
      const { holdId, charge } = event.data;
      const wasReleased = getHoldResolution(holdId, challenge) === 'released';
      const cost = wasReleased ? money.parseJsonAmount(charge.cost) : ZERO_USD;
      return { ...challenge, ...markAbsorbed(holdId, challenge), absorbed: money.add(challenge.absorbed, cost) };
    }
    case 'ChargeReversed': {
      const { holdId } = event.data;
      const charged = money.parseJsonAmount(event.data.charged);
      return {
        ...challenge,
        ...markReversed(holdId, challenge),
        available: money.add(challenge.available, charged),
        charged: money.subtract(challenge.charged, charged),
        served: challenge.served - 1,
      };
    }
    default:
      return throwUnknownEvent(event);
  }
}

function addReceived(challenge: ChallengeState, amount: string, units: string): ChallengeState {
  const available = money.add(challenge.available, money.parseJsonAmount(amount));
  return { ...challenge, available, units: challenge.units + BigInt(units) };
}

function applyHold(
  challenge: ChallengeState,
  { holdId, keyId, owner, expiresAt, query, at, ...data }: FundsHeld['data'],
) {
  const amount = money.parseJsonAmount(data.amount);
  const owned = owner === undefined ? {} : { owner };
  const hold: OpenHold = { amount, keyId, counter: '', ...owned, expiresAt, query, at, countedAt: at };
  return {
    ...challenge,
    available: money.subtract(challenge.available, amount),
    holds: challenge.holds.set(holdId, hold),
    claims: challenge.claims + 1,
  };
}

function applyHoldEnd(
  challenge: ChallengeState,
  holdId: string,
  resolution: 'settled' | 'released' | 'expired',
  charged: PicoUsd,
) {
  const hold = challenge.holds.get(holdId);
  if (!hold) return challenge;
  return {
    ...challenge,
    ...removeHold(holdId, resolution, challenge),
    available: (challenge.available + hold.amount - charged) as PicoUsd,
    charged: money.add(challenge.charged, charged),
  };
}
