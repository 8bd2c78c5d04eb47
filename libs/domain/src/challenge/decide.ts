/**
 * The decisions of a payment challenge. The proof of its payment claims the money for the one request that the
 * challenge was issued for. A claim is a hold. If the hold ends without a charge, the proof can be used again until
 * `usableUntil`, unless the challenge is exhausted.
 */
import { type Decider, money, type PicoUsd, ZERO_USD } from '#kernel';
import { CHALLENGE, type ChallengeEvent, type ChallengeIssued, type ChallengePaid, type Instant } from '../events.ts';
import { decideHold, getHoldResolution, type HoldCommand } from '../holds.ts';
import { assertBalanced, toPostings } from '../postings.ts';
import type { Query } from '../query.ts';
import { reject } from '../rejections.ts';
import type { PaymentAdjustment } from '../topup/decide.ts';
import { type ChallengeState, evolveChallenge, INITIAL_CHALLENGE, isExhausted } from './state.ts';

/**
 * Maximum number of times that a request is served if gateways die before its response is sent. The payer is charged
 * only once.
 */
const MAX_SERVED_REQUESTS = 3;

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Readonly<Data> & { readonly at: Instant };
}

/** A valid proof of the payment was presented with a request. */
export interface ChallengeProofClaim {
  readonly holdId: string;
  /** Digest of the request. */
  readonly request: string;
  readonly maxAmount: PicoUsd;
  readonly owner?: string;
  readonly expiresAt: Instant;
  readonly query: Query;
  /** The request was served before, but its response was lost when the gateway died. */
  readonly isRetry?: boolean;
}

export type ChallengeCommand =
  | { readonly type: 'IssueChallenge'; readonly data: ChallengeIssued['data'] }
  | Command<'ClaimChallenge', ChallengeProofClaim>
  /** `units`: the total that the payment backend has received. `fees`: what the backend has deducted from it. */
  | Command<'RecordChallengePayment', { units: bigint; fees?: readonly PaymentAdjustment[] }>
  /** Forfeits the remaining amount of a challenge whose `usableUntil` is before `usableBefore` and has passed. */
  | Command<'ForfeitChallenge', { usableBefore: Instant }>
  | HoldCommand;

function decide(command: ChallengeCommand, challenge: ChallengeState): readonly ChallengeEvent[] {
  const { issued } = challenge;
  if (command.type === 'IssueChallenge') return issued ? [] : [{ type: 'ChallengeIssued', data: command.data }];
  if (!issued) return reject('challenge_not_found', 'Payment challenge not found');
  switch (command.type) {
    case 'ClaimChallenge':
      return ensureBalanced(claim(command.data, challenge, issued));
    case 'RecordChallengePayment':
      return ensureBalanced(recordPayment(command.data, challenge, issued));
    case 'ForfeitChallenge':
      return ensureBalanced(forfeit(command.data, challenge, issued));
    default:
      return ensureBalanced(decideHold(command, challenge));
  }
}

type DataOf<Type extends ChallengeCommand['type']> = Extract<ChallengeCommand, { type: Type }>['data'];
type IssuedChallenge = ChallengeIssued['data'];

function claim(
  data: DataOf<'ClaimChallenge'>,
  challenge: ChallengeState,
  issued: IssuedChallenge,
): readonly ChallengeEvent[] {
  const { holdId, request, owner, expiresAt, query, at } = data;
  if (challenge.holds.has(holdId)) return [];
  if (getHoldResolution(holdId, challenge)) reject('hold_resolved', `Hold ${holdId} has ended`);
  assertClaimable(request, at, challenge, issued);
  if (challenge.served > 0 && !canServeAgain(data, challenge))
    reject('challenge_used', 'The payment has already been used for a response');
  const paid = challenge.paid ? [] : [createChallengePaid('preimage', issued, at)];
  const { available } = paid.reduce(evolveChallenge, challenge);
  // If prices have risen since the challenge was issued, the request costs more. The payer does not pay the difference.
  const amount = money.toJsonAmount(challenge.served > 0 ? ZERO_USD : money.min(data.maxAmount, available));
  const owned = owner === undefined ? {} : { owner };
  return [...paid, { type: 'FundsHeld', data: { holdId, keyId: null, amount, ...owned, expiresAt, query, at } }];
}

/** @throws Rejection if the payment is for another request, expired, in use or exhausted */
function assertClaimable(request: string, at: Instant, challenge: ChallengeState, issued: IssuedChallenge): void {
  const { holds, forfeited } = challenge;
  if (request !== issued.request) reject('challenge_mismatch', 'The payment was made for another request');
  if (at > issued.usableUntil || forfeited > 0n) reject('challenge_expired', 'The payment can no longer be used');
  if (holds.size > 0) reject('challenge_running', 'A request with this payment is in progress');
  if (isExhausted(challenge))
    reject(
      'challenge_exhausted',
      'Earlier attempts with this payment failed, and no further one is allowed; the unused amount is owed to you',
    );
}

function canServeAgain({ isRetry = false }: DataOf<'ClaimChallenge'>, { served }: ChallengeState): boolean {
  return isRetry && served < MAX_SERVED_REQUESTS;
}

function recordPayment(
  { units, fees = [], at }: DataOf<'RecordChallengePayment'>,
  { paid, units: receivedUnits, fees: chargedFeeIds }: ChallengeState,
  issued: IssuedChallenge,
): readonly ChallengeEvent[] {
  const requestedUnits = BigInt(issued.units);
  if (units < requestedUnits) reject('payment_conflict', 'The received amount is too small for the payment challenge');
  const events: ChallengeEvent[] = paid ? [] : [createChallengePaid('backend', issued, at)];
  const extraUnits = units - (paid ? receivedUnits : requestedUnits);
  if (extraUnits > 0n) events.push(createChallengeOverpaid(extraUnits, issued, at));
  const newFees = fees.filter(
    ({ id, units }, i) => units !== 0n && !chargedFeeIds.includes(id) && fees.findIndex((fee) => fee.id === id) === i,
  );
  return [...events, ...newFees.map((fee) => createPaymentFeeCharged(fee, issued, at))];
}

/** The operator pays the fee. The payer is still owed the full amount. */
function createPaymentFeeCharged(
  { id: feeId, units, why }: PaymentAdjustment,
  issued: IssuedChallenge,
  at: Instant,
): ChallengeEvent {
  const { method, coin, backend, reference } = issued;
  const data = { method, coin, payment: { backend, id: reference }, feeId, units: units.toString() };
  return { type: 'PaymentFeeCharged', data: { ...data, amount: calculateUsdValue(units, issued), why, at } };
}

function createChallengePaid(by: ChallengePaid['data']['by'], issued: IssuedChallenge, at: Instant): ChallengePaid {
  const { method, coin, backend, units, worth: amount, price } = issued;
  return { type: 'ChallengePaid', data: { method, coin, backend, units, amount, price, by, at } };
}

function createChallengeOverpaid(units: bigint, issued: IssuedChallenge, at: Instant): ChallengeEvent {
  const { method, coin, backend } = issued;
  const amount = calculateUsdValue(units, issued);
  return { type: 'ChallengeOverpaid', data: { method, coin, backend, units: units.toString(), amount, at } };
}

/** Converts units at the rate at which the challenge was issued. */
function calculateUsdValue(units: bigint, { worth, units: requestedUnits }: IssuedChallenge): string {
  return ((BigInt(worth) * units) / BigInt(requestedUnits)).toString();
}

/** Forfeits the rest only if the payer can no longer use it. */
function forfeit(
  { usableBefore, at }: DataOf<'ForfeitChallenge'>,
  { available, holds }: ChallengeState,
  { usableUntil }: IssuedChallenge,
): readonly ChallengeEvent[] {
  const hasExpired = usableUntil < usableBefore && usableUntil < at;
  if (available === 0n || holds.size > 0 || !hasExpired) return [];
  return [{ type: 'ChallengeForfeited', data: { amount: money.toJsonAmount(available), at } }];
}

function ensureBalanced(events: readonly ChallengeEvent[]): readonly ChallengeEvent[] {
  for (const event of events) assertBalanced(toPostings(CHALLENGE, event));
  return events;
}

export const challengeDecider: Decider<ChallengeCommand, ChallengeState, ChallengeEvent> = {
  getInitialState: () => INITIAL_CHALLENGE,
  evolve: evolveChallenge,
  decide,
};
