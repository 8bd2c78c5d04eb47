/** Generates challenges with actions in any order. The decider rejects impossible actions. */
import fc from 'fast-check';
import type { ChallengeCommand, ChallengeIssued, ChallengeState, Charge } from '#domain';
import { type PicoUsd, parseUsd } from '#kernel';
import { createTestCharge } from './history-charges.ts';
import { createIssuedChallenge } from './issued-challenge.ts';

const MINUTE_MS = 60_000;
const EXPIRY_MS = 5 * MINUTE_MS;
const USABLE_MS = 24 * 60 * MINUTE_MS;

type ChallengeAction =
  | { readonly type: 'pay'; readonly excess: bigint }
  | { readonly type: 'claim'; readonly isRetry: boolean }
  | { readonly type: 'settle'; readonly price: PicoUsd; readonly output: number }
  | { readonly type: 'release'; readonly isRejected: boolean; readonly absorbed: boolean }
  | { readonly type: 'wait'; readonly minutes: number }
  | { readonly type: 'keep' | 'expire' | 'abandon' | 'forfeit' };

export interface ChallengeScenario {
  readonly price: PicoUsd;
  readonly actions: readonly ChallengeAction[];
}

const amount = fc.bigInt({ min: 1n, max: parseUsd('0.6') }).map((value) => value as PicoUsd);

const actions: fc.Arbitrary<ChallengeAction> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('pay' as const), excess: fc.constantFrom(0n, 0n, 1n, 7_777n) }),
  },
  { weight: 5, arbitrary: fc.record({ type: fc.constant('claim' as const), isRetry: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('settle' as const), price: amount, output: fc.nat(9) }) },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('release' as const), isRejected: fc.boolean(), absorbed: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('wait' as const), minutes: fc.constantFrom(2, 20, 1_500) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('keep', 'expire', 'abandon', 'forfeit') }) },
);

export const challengeScenarios: fc.Arbitrary<ChallengeScenario> = fc.record({
  price: amount,
  actions: fc.array(actions, { maxLength: 14 }),
});

interface ChallengeHistory {
  readonly challenges: ReadonlyMap<string, ChallengeState>;
  getInstant(inMs?: number): string;
  advance(minutes: number): void;
  runChallengeCommand(id: string, command: ChallengeCommand): void;
}

/** Runs a scenario under a new challenge id. @param charge creates each charge from a price and output tokens */
export function runChallengeScenario(
  history: ChallengeHistory,
  { price, actions }: ChallengeScenario,
  charge: typeof createSearchCharge = createSearchCharge,
): void {
  const id = `10000000-0000-4000-8000-${String(history.challenges.size).padStart(12, '0')}`;
  const expires = { expiresAt: history.getInstant(EXPIRY_MS), usableUntil: history.getInstant(EXPIRY_MS + USABLE_MS) };
  const issued = createIssuedChallenge(
    { id: `id of ${id}`, reference: `hash of ${id}`, ...expires, at: history.getInstant() },
    price,
  );
  history.runChallengeCommand(id, { type: 'IssueChallenge', data: issued });
  let claims = 0;
  for (const action of actions) {
    if (action.type === 'wait') history.advance(action.minutes);
    else {
      if (action.type === 'claim') claims++;
      history.runChallengeCommand(
        id,
        toCommand(action, { issued, holdId: `${id} ${claims}`, at: history.getInstant(), history, charge }),
      );
    }
  }
}

function createSearchCharge(price: PicoUsd, output: number): Charge {
  return createTestCharge('web/search', price, output);
}

interface Scene {
  readonly issued: ChallengeIssued['data'];
  readonly holdId: string;
  readonly at: string;
  readonly history: ChallengeHistory;
  readonly charge: typeof createSearchCharge;
}

function toCommand(
  action: Exclude<ChallengeAction, { type: 'wait' }>,
  { issued, holdId, at, history, charge }: Scene,
): ChallengeCommand {
  const { query, request, price } = issued;
  switch (action.type) {
    case 'pay':
      return {
        type: 'RecordChallengePayment',
        data: { units: BigInt(issued.units) + action.excess, fees: [{ id: 'f', units: action.excess, why: 'f' }], at },
      };
    case 'claim': {
      const maxAmount = BigInt(price) as PicoUsd;
      const terms = { holdId, request, maxAmount, owner: 'gateway-1', query, isRetry: action.isRetry };
      return { type: 'ClaimChallenge', data: { ...terms, expiresAt: history.getInstant(EXPIRY_MS), at } };
    }
    case 'settle':
      return { type: 'SettleHold', data: { holdId, charge: charge(action.price, action.output), at } };
    case 'release': {
      const errorCode = action.isRejected ? 'content_policy_violation' : 'upstream_error';
      const absorbed = action.absorbed ? { absorbed: charge(parseUsd('0.1'), 1) } : {};
      return { type: 'ReleaseHold', data: { holdId, errorCode, reason: 'it failed', attempts: [], ...absorbed, at } };
    }
    case 'keep':
      return { type: 'KeepHold', data: { holdId, owner: `video-${holdId}`, at } };
    case 'expire':
      return { type: 'ExpireHolds', data: { before: at, at } };
    case 'abandon':
      return { type: 'AbandonHolds', data: { owner: 'gateway-1', before: at, at } };
    case 'forfeit':
      return { type: 'ForfeitChallenge', data: { usableBefore: at, at } };
    default:
      return action satisfies never;
  }
}
