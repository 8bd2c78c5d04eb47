import { money, PersistentMap, type PicoUsd, throwUnknownEvent, ZERO_USD } from '#kernel';
import type { ChallengeEvent, ChallengeIssued, ChallengePaid, FundsHeld, Instant } from '../events.ts';
import {
  type Holds,
  markAbsorbed,
  NO_RECENT_IDS,
  type OpenHold,
  REQUEST_ERROR_CODES,
  removeHold,
  transferHold,
} from '../holds.ts';

/** How often a proof is accepted at most, and for a request that is refused for its own fault: each try may cost the house something. */
const MAX_CLAIMS = 100;
const MAX_REJECTIONS = 3;

export interface ChallengeState extends Holds {
  readonly issued: ChallengeIssued['data'] | undefined;
  readonly paid: ChallengePaid['data'] | undefined;
  /** All that has come, in the coin's smallest unit. */
  readonly units: bigint;
  /** Ids of what its back end has kept of it. */
  readonly fees: readonly string[];
  /** What is neither held nor charged: a debt of the house. */
  readonly available: PicoUsd;
  readonly charged: PicoUsd;
  readonly forfeited: PicoUsd;
  /** How often its proof was accepted, how often the request was served, and how often it was refused for its own fault. */
  readonly claims: number;
  readonly served: number;
  readonly rejections: number;
  /** What vendors have invoiced for tries that came to nothing: the house bears it. */
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
  holds: PersistentMap.empty(),
  resolved: NO_RECENT_IDS,
  expired: NO_RECENT_IDS,
};

/** What a challenge is at a time, in a word. */
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

/** Its request cannot be served: it was tried often enough, or the house has borne as much for it as it was to cost. */
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
      const absorbed = money.add(challenge.absorbed, money.parseJsonAmount(charge.cost));
      return { ...challenge, ...markAbsorbed(holdId, challenge), absorbed };
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
    holds: challenge.holds.with(holdId, hold),
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
