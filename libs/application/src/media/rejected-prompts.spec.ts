import { expect, test } from '@jest/globals';
import { Clock } from '../clock.ts';
import { UpstreamError } from '../errors.ts';
import { RejectedPrompts } from './rejected-prompts.ts';

const HOUR_MS = 3_600_000;

class SetClock extends Clock {
  time = 0;
  nowMs(): number {
    return this.time;
  }
}

const clock = new SetClock();
const refuse = () => Promise.reject(new UpstreamError('content_policy_violation', 'no'));
const fail = () => Promise.reject(new UpstreamError('upstream_error', 'no'));
const deliver = () => Promise.resolve('an image');
const codeOf = (serving: Promise<unknown>) => serving.then(String, (error) => error.code);

test('limits the rejected prompts of each account per hour', async () => {
  const prompts = new RejectedPrompts(clock, 2);
  for (const serve of [refuse, fail, deliver, refuse]) await codeOf(prompts.runWithinLimit('a', serve));
  const error = (await prompts.runWithinLimit('a', deliver).catch((each) => each)) as UpstreamError;
  expect(error).toMatchObject({ code: 'rate_limited', retryAfterSeconds: HOUR_MS / 1_000 });
  expect(await codeOf(prompts.runWithinLimit('b', refuse))).toBe('content_policy_violation');
  clock.time += HOUR_MS;
  expect(await codeOf(prompts.runWithinLimit('a', deliver))).toBe('an image');
});

test('limits concurrent requests to the allowed rejections plus the delivered results', async () => {
  const prompts = new RejectedPrompts(clock, 2);
  const pending = Promise.withResolvers<string>();
  const running = [1, 2].map(() => prompts.runWithinLimit('a', () => pending.promise));
  expect(await codeOf(prompts.runWithinLimit('a', deliver))).toBe('rate_limited');
  pending.resolve('an image');
  await Promise.all(running);
  const more = [1, 2, 3, 4].map(() => prompts.runWithinLimit('a', deliver));
  expect(await Promise.all(more)).toHaveLength(4);
  expect(await codeOf(prompts.runWithinLimit('a', deliver))).toBe('an image');
});
