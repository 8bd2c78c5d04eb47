/** What is to be done for a payment challenge: what nobody has shown a proof of may be paid all the same. */
import type { QueryStep, Workflow, WorkflowPlan } from '#kernel';
import { CHALLENGE, type ChallengeEvent, type Instant } from '../events.ts';
import { type ChallengeCommand, challengeDecider } from './decide.ts';
import type { ChallengeState } from './state.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** When it is looked for, after it could be paid last: a payment that was on its way then may take days to arrive. */
const POLL_DELAYS_MS = [30 * SECOND_MS, 5 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS, 3 * DAY_MS, 7 * DAY_MS] as const;
/** The same where its proof was shown: then it is there, or something is wrong. */
const VERIFIED_POLL_DELAYS_MS = [30 * SECOND_MS, 5 * MINUTE_MS, HOUR_MS] as const;

/** What has come for a challenge? */
export interface ChallengePaymentQuery {
  readonly backend: string;
  readonly reference: string;
  /** Its proof was shown: its back end must know of the payment. */
  readonly isVerified: boolean;
}

export type ChallengeStep = QueryStep<ChallengePaymentQuery>;

/** Once the back end has said that it is paid, nothing more can come: a Lightning invoice is paid once. */
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
  // None of them wants to be looked at before its time.
  lowPriorityEvents: new Set<ChallengeEvent['type']>([
    ...(['ChallengeIssued', 'ChallengePaid', 'ChallengeOverpaid', 'PaymentFeeCharged', 'ChallengeForfeited'] as const),
    ...(['FundsHeld', 'HoldKept', 'HoldSettled', 'HoldReleased', 'HoldExpired', 'ChargeAbsorbed'] as const),
  ]),
  plan,
};
