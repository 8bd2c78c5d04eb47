import { expect, test } from '@jest/globals';
import { usd, ZERO } from '#kernel';
import { Clock } from '../clock.ts';
import { Losses } from './losses.ts';

const HOUR_MS = 3_600_000;

class SetClock extends Clock {
  time = 0;
  milliseconds(): number {
    return this.time;
  }
}

test('the house bears so much for a payer in an hour, a twentieth of what it was charged on top, and then takes nothing more', () => {
  const clock = new SetClock();
  const alarms: string[] = [];
  const losses = new Losses(clock, usd('1'), (problem) => alarms.push(problem));
  const isTaken = (payer: string) => {
    try {
      losses.assertBearable(payer);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: 'rate_limited', retryAfterSeconds: expect.any(Number) });
      return false;
    }
  };
  losses.count('account-a', ZERO, usd('1000')); // before anything was lost: an hour begins with a loss
  losses.count('account-a', usd('1'), ZERO);
  expect(isTaken('account-a')).toBe(true);
  losses.count('account-a', usd('0.5'), ZERO);
  expect([isTaken('account-a'), isTaken('account-b')]).toEqual([false, true]);
  losses.count('account-a', ZERO, usd('10'));
  expect(isTaken('account-a')).toBe(true);
  losses.count('account-a', usd('0.01'), ZERO);
  expect(isTaken('account-a')).toBe(false);
  expect(alarms).toEqual([
    'account-a is refused for an hour: 1.5 USD were borne for it',
    'account-a is refused for an hour: 1.51 USD were borne for it',
  ]);
  clock.time += HOUR_MS;
  expect(isTaken('account-a')).toBe(true);
});
