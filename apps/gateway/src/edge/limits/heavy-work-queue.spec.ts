import { expect, test } from '@jest/globals';
import { HeavyWorkQueue } from './heavy-work-queue.ts';

function work(): number {
  for (const end = performance.now() + 5; performance.now() < end; );
  return 1;
}

test('an owner with one unit of work waits for one unit of another owner, not for all of them', async () => {
  const queue = new HeavyWorkQueue();
  const order: string[] = [];
  const run = (owner: string) => queue.run(owner, work).then(() => order.push(owner));
  await Promise.all([run('attacker'), run('attacker'), run('attacker'), run('attacker'), run('customer')]);
  expect(order.slice(0, 2)).toEqual(['attacker', 'customer']);
});

test('work takes at most a quarter of the time', async () => {
  const queue = new HeavyWorkQueue();
  const startedAt = performance.now();
  await Promise.all(['a', 'a', 'b', 'b', 'c'].map((owner) => queue.run(owner, work)));
  expect(performance.now() - startedAt).toBeGreaterThan(4 * 4 * 5);
});

test('an error reaches the owner of the work, and the next work runs', async () => {
  const queue = new HeavyWorkQueue();
  const failed = queue.run('a', () => {
    throw new Error('broken');
  });
  await expect(failed).rejects.toThrow('broken');
  await expect(queue.run('a', work)).resolves.toBe(1);
});
