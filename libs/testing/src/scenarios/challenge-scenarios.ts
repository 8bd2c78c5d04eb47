/** Payment challenges, up to any point of their lives, in any order of what can happen to them. */
import fc from 'fast-check';
import type { ChallengeCommand, ChallengeIssued, ChallengeState, Charge } from '#domain';
import { type PicoUsd, parseUsd } from '#kernel';
import { chargeIn } from './history-charges.ts';
import { issuedChallenge } from './issued-challenge.ts';

const MINUTE_MS = 60_000;
const EXPIRY_MS = 5 * MINUTE_MS;
const USABLE_MS = 24 * 60 * MINUTE_MS;

type Act =
  | { readonly act: 'pay'; readonly beyond: bigint }
  | { readonly act: 'claim'; readonly again: boolean }
  | { readonly act: 'settle'; readonly price: PicoUsd; readonly output: number }
  | { readonly act: 'release'; readonly refused: boolean; readonly absorbed: boolean }
  | { readonly act: 'wait'; readonly minutes: number }
  | { readonly act: 'keep' | 'expire' | 'abandon' | 'forfeit' };

export interface ChallengeLife {
  readonly price: PicoUsd;
  readonly acts: readonly Act[];
}

const amount = fc.bigInt({ min: 1n, max: parseUsd('0.6') }).map((each) => each as PicoUsd);

const acts: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant('pay' as const), beyond: fc.constantFrom(0n, 0n, 1n, 7_777n) }),
  },
  { weight: 5, arbitrary: fc.record({ act: fc.constant('claim' as const), again: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constant('settle' as const), price: amount, output: fc.nat(9) }) },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant('release' as const), refused: fc.boolean(), absorbed: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('wait' as const), minutes: fc.constantFrom(2, 20, 1_500) }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constantFrom('keep', 'expire', 'abandon', 'forfeit') }) },
);

export const challengeLives: fc.Arbitrary<ChallengeLife> = fc.record({
  price: amount,
  acts: fc.array(acts, { maxLength: 14 }),
});

interface Story {
  readonly challenges: ReadonlyMap<string, ChallengeState>;
  getInstant(inMs?: number): string;
  advance(minutes: number): void;
  runChallengeCommand(id: string, command: ChallengeCommand): void;
}

/** Each has an id of its own; `charge` is what a use of some price and output comes to. */
export function liveChallenge(story: Story, { price, acts }: ChallengeLife, charge: typeof chargeOf = chargeOf): void {
  const id = `10000000-0000-4000-8000-${String(story.challenges.size).padStart(12, '0')}`;
  const expires = { expiresAt: story.getInstant(EXPIRY_MS), usableUntil: story.getInstant(EXPIRY_MS + USABLE_MS) };
  const issued = issuedChallenge(
    { id: `id of ${id}`, reference: `hash of ${id}`, ...expires, at: story.getInstant() },
    price,
  );
  story.runChallengeCommand(id, { type: 'IssueChallenge', data: issued });
  let claims = 0;
  for (const each of acts) {
    if (each.act === 'wait') story.advance(each.minutes);
    else {
      if (each.act === 'claim') claims++;
      story.runChallengeCommand(
        id,
        commandOf(each, { issued, holdId: `${id} ${claims}`, at: story.getInstant(), story, charge }),
      );
    }
  }
}

function chargeOf(price: PicoUsd, output: number): Charge {
  return chargeIn('web/search', price, output);
}

interface Scene {
  readonly issued: ChallengeIssued['data'];
  readonly holdId: string;
  readonly at: string;
  readonly story: Story;
  readonly charge: typeof chargeOf;
}

function commandOf(act: Exclude<Act, { act: 'wait' }>, { issued, holdId, at, story, charge }: Scene): ChallengeCommand {
  const { query, request, price } = issued;
  switch (act.act) {
    case 'pay':
      return {
        type: 'RecordChallengePayment',
        data: { units: BigInt(issued.units) + act.beyond, fees: [{ id: 'f', units: act.beyond, why: 'f' }], at },
      };
    case 'claim': {
      const atMost = BigInt(price) as PicoUsd;
      const terms = { holdId, request, maxAmount: atMost, owner: 'gateway-1', query, isRetry: act.again };
      return { type: 'ClaimChallenge', data: { ...terms, expiresAt: story.getInstant(EXPIRY_MS), at } };
    }
    case 'settle':
      return { type: 'SettleHold', data: { holdId, charge: charge(act.price, act.output), at } };
    case 'release': {
      const errorCode = act.refused ? 'content_policy_violation' : 'upstream_error';
      const absorbed = act.absorbed ? { absorbed: charge(parseUsd('0.1'), 1) } : {};
      return { type: 'ReleaseHold', data: { holdId, errorCode, reason: 'it failed', attempts: [], ...absorbed, at } };
    }
    case 'keep':
      return { type: 'KeepHold', data: { holdId, owner: `video-${holdId}`, at } };
    case 'expire':
      return { type: 'ExpireHolds', data: { before: at, at } };
    case 'abandon':
      return { type: 'AbandonHolds', data: { owner: 'gateway-1', at } };
    case 'forfeit':
      return { type: 'ForfeitChallenge', data: { usableBefore: at, at } };
    default:
      return act satisfies never;
  }
}
