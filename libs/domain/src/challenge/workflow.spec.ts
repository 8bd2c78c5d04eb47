import { describe, expect, test } from '@jest/globals';
import { type ChallengeEvent, type ChallengeStep, challengeWorkflow } from '#domain';
import { fold } from '#kernel';
import { createIssuedChallenge, createWorkflowTest } from '#testing';

const given = createWorkflowTest(challengeWorkflow);
const data = createIssuedChallenge({ expiresAt: '2026-11-22T12:05:00.000Z' });
const issued: ChallengeEvent = { type: 'ChallengeIssued', data };
const paid = (by: 'backend' | 'preimage'): ChallengeEvent => {
  const { method, coin, backend, units, worth: amount, price } = data;
  const at = '2026-11-22T12:01:00.000Z';
  return { type: 'ChallengePaid', data: { method, coin, backend, units, amount, price, by, at } };
};
const look = (isProven: boolean): ChallengeStep => {
  return { step: 'query', query: { backend: data.backend, reference: data.reference, isVerified: isProven } };
};

/** Returns the times at which the payment is checked. */
function looksOf(...past: readonly ChallengeEvent[]): readonly string[] {
  const challenge = fold(challengeWorkflow.decider, challengeWorkflow.decider.getInitialState(), past);
  const looks: string[] = [];
  for (let now: string | undefined = '2026-11-22T12:00:00.000Z'; now !== undefined; ) {
    const { steps, dueAt } = challengeWorkflow.plan(challenge, now);
    if (steps.length > 0) looks.push(now);
    now = dueAt;
  }
  return looks;
}

describe('the payment of a challenge', () => {
  test('is checked seven times, from 30 s to 7 days after the expiry', () => {
    expect(looksOf(issued)).toEqual([
      '2026-11-22T12:05:30.000Z',
      '2026-11-22T12:10:00.000Z',
      '2026-11-22T13:05:00.000Z',
      '2026-11-22T18:05:00.000Z',
      '2026-11-23T12:05:00.000Z',
      '2026-11-25T12:05:00.000Z',
      '2026-11-29T12:05:00.000Z',
    ]);
  });

  test('is checked three times after its proof was presented', () => {
    expect(looksOf(issued, paid('preimage'))).toEqual([
      '2026-11-22T12:01:30.000Z',
      '2026-11-22T12:06:00.000Z',
      '2026-11-22T13:01:00.000Z',
    ]);
    given(issued, paid('preimage'))
      .when('2026-11-22T12:01:30.000Z')
      .then([look(true)], '2026-11-22T12:06:00.000Z');
  });

  test('is no longer checked once the payment backend has reported it', () => {
    given(issued, paid('backend')).when('2026-11-22T12:06:00.000Z').then([]);
  });

  test('is checked late if it could not be checked in time', () => {
    given(issued)
      .when('2026-11-22T12:09:59.999Z')
      .then([look(false)], '2026-11-22T12:10:00.000Z');
    given(issued)
      .when('2027-01-01T00:00:00.000Z')
      .then([look(false)]);
  });
});
