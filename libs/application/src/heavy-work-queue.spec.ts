import { expect, test } from '@jest/globals';
import { HeavyWorkQueue } from './heavy-work-queue.ts';

function workFor(milliseconds: number): number {
  for (const end = performance.now() + milliseconds; performance.now() < end; );
  return 1;
}
const work = () => workFor(5);

test('an owner with one body waits for one body of another owner, not for all of them', async () => {
  const queue = new HeavyWorkQueue();
  const order: string[] = [];
  const run = (owner: string) => queue.run(owner, 1, [work]).then(() => order.push(owner));
  await Promise.all([run('attacker'), run('attacker'), run('attacker'), run('attacker'), run('customer')]);
  expect(order.slice(0, 2)).toEqual(['attacker', 'customer']);
});

test('work takes at most a quarter of the time, and less if the body is large', async () => {
  const measure = async (bytes: number) => {
    const queue = new HeavyWorkQueue();
    const startedAt = performance.now();
    await Promise.all(['a', 'a', 'b', 'b', 'c'].map((owner) => queue.run(owner, bytes, [work])));
    return performance.now() - startedAt;
  };
  expect(await measure(1)).toBeGreaterThan(4 * 4 * 5);
  expect(await measure(1024 * 1024)).toBeGreaterThan(4 * 4 * (5 + 6));
});

test('pauses grow faster than the duration of a step', async () => {
  const queue = new HeavyWorkQueue();
  const startedAt = performance.now();
  await queue.run('a', 1, [() => workFor(30)]);
  expect(performance.now() - startedAt).toBeGreaterThan(30 + 30 * 6);
});

test('a step that takes very long, because the host was suspended, has a limited pause', async () => {
  const queue = new HeavyWorkQueue();
  const startedAt = performance.now();
  await queue.run('a', 1, [() => workFor(300)]);
  expect(performance.now() - startedAt).toBeLessThan(300 * 10);
});

test('each step gets the result of the one before it, in a turn of its own', async () => {
  let turn = 0;
  const countTurns = () => {
    turn++;
    timer = setImmediate(countTurns);
  };
  let timer = setImmediate(countTurns);
  const turns: number[] = [];
  const step = (input = 0): number => {
    turns.push(turn);
    return input + 1;
  };
  expect(await new HeavyWorkQueue().run('a', 1, [step, step, step])).toBe(3);
  clearImmediate(timer);
  expect(new Set(turns).size).toBe(3);
});

test('an error reaches the owner of the work, and the next work runs', async () => {
  const queue = new HeavyWorkQueue();
  const fail = () => {
    throw new Error('broken');
  };
  await expect(queue.run('a', 1, [fail, work])).rejects.toThrow('broken');
  await expect(queue.run('a', 1, [work])).resolves.toBe(1);
});
