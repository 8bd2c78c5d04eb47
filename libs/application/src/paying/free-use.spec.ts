import { expect, test } from '@jest/globals';
import { ZERO } from '#kernel';
import { Clock } from '../clock.ts';
import { FreeUse } from './free-use.ts';
import type { Payer } from './payer.ts';

class SetClock extends Clock {
  time = 0;

  milliseconds(): number {
    return this.time;
  }
}

function counting(freePerMinute: number, freePerDay: number) {
  const clock = new SetClock();
  const use = new FreeUse(clock, { freePerMinute, freePerDay });
  const hold = { holdId: 'h', payer: 'p', amount: ZERO, expiresAt: 0 };
  const ask = async (id: string, free = true) => {
    const payer = { id, take: async () => hold } as unknown as Payer;
    const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free } as const;
    const request = { holdId: 'h', query, atLeast: ZERO, atMost: ZERO, priceList: 'p', lifetimeMs: 1 };
    return use
      .payerOf(payer)
      .take(request)
      .then(
        () => 'taken',
        ({ code, retryAfterSeconds }) => `${code} ${retryAfterSeconds}`,
      );
  };
  return { clock, ask };
}

test('an account has so many requests to free models a minute, and is told when there are more', async () => {
  const { clock, ask } = counting(2, 100);
  expect([await ask('a'), await ask('a'), await ask('a')]).toEqual(['taken', 'taken', 'rate_limited 60']);
  expect(await ask('b')).toBe('taken');
  expect(await ask('a', false)).toBe('taken');
  clock.time = 59_001;
  expect(await ask('a')).toBe('rate_limited 1');
  clock.time = 60_000;
  expect(await ask('a')).toBe('taken');
});

test('and so many a day', async () => {
  const { clock, ask } = counting(2, 3);
  const answers: string[] = [];
  for (let minute = 0; minute < 4; minute++) {
    clock.time = minute * 60_000;
    answers.push(await ask('a'));
  }
  expect(answers).toEqual(['taken', 'taken', 'taken', `rate_limited ${24 * 3_600 - 180}`]);
  clock.time = 24 * 3_600_000;
  expect(await ask('a')).toBe('taken');
});
