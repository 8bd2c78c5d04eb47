import { expect, test } from '@jest/globals';
import { challengeDecider } from '#domain';
import type { ChallengeView } from '#projections';
import { createIssuedChallenge } from '#testing';
import { addAllTerms, MAX_CONCURRENT_READS } from './challenges.ts';

test('the streams of challenges are read at once, up to a limit, and the order does not change', async () => {
  const ids = Array.from({ length: 3 * MAX_CONCURRENT_READS }, (_, i) => `${i}`);
  let [reading, most] = [0, 0];
  const read = async (reference: string) => {
    most = Math.max(most, ++reading);
    await new Promise(setImmediate);
    reading--;
    return { ...challengeDecider.getInitialState(), issued: createIssuedChallenge({ reference }) };
  };

  const views = ids.map((challengeId) => ({ challengeId }) as ChallengeView);
  const challenges = await addAllTerms(views, { challenges: { read } });

  expect(challenges.map(({ challengeId, reference }) => [challengeId, reference])).toEqual(ids.map((id) => [id, id]));
  expect(most).toBe(MAX_CONCURRENT_READS);
});
