/**
 * The next steps of a payment challenge. The payment backend is queried, because the challenge can be paid even if no
 * proof is presented.
 */
import type { QueryStep, Workflow, WorkflowPlan } from '#kernel';
import { CHALLENGE, type ChallengeEvent, type Instant } from '../events.ts';
import { type ChallengeCommand, challengeDecider } from './decide.ts';
import type { ChallengeState } from './state.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** When an unpaid challenge is checked, after its expiry: a payment in flight at that time can take days to arrive. */
const POLL_DELAYS_MS = [30 * SECOND_MS, 5 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS, 3 * DAY_MS, 7 * DAY_MS] as const;
/** When a challenge with a verified proof is checked, after the proof: the payment must have arrived by then. */
const VERIFIED_POLL_DELAYS_MS = [30 * SECOND_MS, 5 * MINUTE_MS, HOUR_MS] as const;

/** Checks what the payment backend has received for a challenge. */
export interface ChallengePaymentQuery {
  readonly backend: string;
  readonly reference: string;
  /** A valid proof was presented, so the payment backend must have the payment. */
  readonly isVerified: boolean;
}

export type ChallengeStep = QueryStep<ChallengePaymentQuery>;

/** Stops once the payment backend has reported the payment, because a Lightning invoice can be paid only once. */
function plan({ issued, paid }: ChallengeState, now: Instant): WorkflowPlan<ChallengeStep> {
  if (!issued || paid?.by === 'backend') return { steps: [] };
  const { backend, reference, expiresAt } = issued;
  const from = Date.parse(paid?.at ?? expiresAt);
  const elapsedMs = Date.parse(now) - from;
  const [first, ...rest] = paid ? VERIFIED_POLL_DELAYS_MS : POLL_DELAYS_MS;
  const wait = [first, ...rest].find((delay) => delay > elapsedMs);
  const dueAt = wait === undefined ? undefined : new Date(from + wait).toISOString();
  if (elapsedMs < first) return { steps: [], dueAt };
  return { steps: [{ step: 'query', query: { backend, reference, isVerified: paid !== undefined } }], dueAt };
}

export const challengeWorkflow: Workflow<ChallengeCommand, ChallengeState, ChallengeEvent, ChallengeStep> = {
  name: 'challenges',
  category: CHALLENGE,
  decider: challengeDecider,
  // No event makes a check due at once, so no event needs an immediate wake-up.
  lowPriorityEvents: new Set<ChallengeEvent['type']>([
    ...(['ChallengeIssued', 'ChallengePaid', 'ChallengeOverpaid', 'PaymentFeeCharged', 'ChallengeForfeited'] as const),
    ...(['FundsHeld', 'HoldKept', 'HoldSettled', 'HoldReleased', 'HoldExpired'] as const),
    ...(['ChargeAbsorbed', 'ChargeReversed'] as const),
  ]),
  plan,
};
