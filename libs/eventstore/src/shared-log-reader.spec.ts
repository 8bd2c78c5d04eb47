import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { type EventBatch, START_POSITION, type StoredEvent } from '#kernel';
import type { LogPage } from './pages.ts';
import { SharedLogReader } from './shared-log-reader.ts';

const PAGE = 10;

/** A log of numbers: the event at position n is n. */
class Numbers {
  readonly asked: bigint[] = [];
  entriesRead = 0;
  waiting = 0;
  failing = false;
  private end = 0n;
  private wake = Promise.withResolvers<void>();

  grow(count: number): void {
    this.end += BigInt(count);
    this.wake.resolve();
    this.wake = Promise.withResolvers();
  }

  async readPage(after: bigint): Promise<LogPage> {
    this.asked.push(after);
    await turn();
    if (this.failing) throw new Error('no response');
    const behind = this.end - 1n - after;
    const count = Number(behind < BigInt(PAGE) ? behind : BigInt(PAGE));
    this.entriesRead += count;
    const events = Array.from({ length: count }, (_, i) => ({ position: after + 1n + BigInt(i) }) as StoredEvent);
    return { events, position: after + BigInt(count), isFull: count === PAGE };
  }

  async waitForEvents(after: bigint, signal: AbortSignal): Promise<void> {
    this.waiting++;
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => resolve());
    while (this.end - 1n <= after && !signal.aborted) await Promise.race([this.wake.promise, aborted]);
    this.waiting--;
  }
}

describe('a shared log', () => {
  let source: Numbers;
  let log: SharedLogReader;
  let over: AbortController;

  beforeEach(() => {
    source = new Numbers();
    log = new SharedLogReader(source);
    over = new AbortController();
  });

  /** Takes batches until there are at least `count` events, and returns their positions. */
  async function taken(from: AsyncGenerator<EventBatch>, count: number): Promise<number[]> {
    const positions: number[] = [];
    while (positions.length < count) {
      const { value } = await from.next();
      positions.push(...(value as EventBatch).events.map(({ position }) => Number(position)));
    }
    return positions;
  }

  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
  const follow = (after: bigint) => log.subscribe(after, over.signal);

  test('is read once for several subscribers', async () => {
    source.grow(95);
    const followers = numbers(0, 6).map(() => follow(START_POSITION));
    const read = Promise.all(followers.map((each) => taken(each, 120)));
    await turn();
    for (let i = 0; i < 25; i++) {
      source.grow(1);
      await turn();
    }
    for (const each of await read) expect(each).toEqual(numbers(0, 120));
    expect(source.entriesRead).toBe(120);
    expect(new Set(source.asked).size).toBe(source.asked.length);
  });

  test('is read separately for a lagging subscriber until it catches up with another one', async () => {
    source.grow(100);
    const [ahead, behind] = [follow(START_POSITION), follow(START_POSITION)];
    expect(await taken(ahead, 100)).toEqual(numbers(0, 100));
    expect(await taken(behind, 15)).toHaveLength(20);
    expect(await taken(behind, 80)).toEqual(numbers(20, 100));
    source.entriesRead = 0;
    for (let i = 100; i < 200; i += 5) {
      source.grow(5);
      expect([await taken(ahead, 5), await taken(behind, 5)]).toEqual([numbers(i, i + 5), numbers(i, i + 5)]);
    }
    expect(source.entriesRead).toBe(100);
  });

  test('is shared by subscribers that started at different positions, even while it grows', async () => {
    source.grow(33);
    const [first, second] = [follow(4n), follow(17n)];
    const positions: number[][] = [[], []];
    for (let i = 0; i < 30; i++) {
      source.grow(3);
      positions[0]?.push(...(await taken(first, 1)));
      if (i % 3 === 0) positions[1]?.push(...(await taken(second, 1)));
    }
    const end = 33 + 30 * 3;
    positions[0]?.push(...(await taken(first, end - 5 - (positions[0]?.length ?? 0))));
    positions[1]?.push(...(await taken(second, end - 18 - (positions[1]?.length ?? 0))));
    expect(positions).toEqual([numbers(5, end), numbers(18, end)]);
    source.entriesRead = 0;
    source.grow(5);
    await Promise.all([taken(first, 5), taken(second, 5)]);
    expect(source.entriesRead).toBe(5);
  });

  test('is no longer polled when all its subscribers were aborted', async () => {
    source.grow(1);
    const [left, aborted] = [follow(START_POSITION), follow(START_POSITION)];
    await taken(left, 1);
    await taken(aborted, 1);
    const waiting = [left.next(), aborted.next()];
    await turn();
    expect(source.waiting).toBe(1);
    over.abort();
    expect(await Promise.all(waiting)).toMatchObject([{ done: true }, { done: true }]);
    await turn();
    expect(source.waiting).toBe(0);
  });

  test('is still read for the other subscribers when one leaves', async () => {
    const [stays, goes] = [follow(START_POSITION), log.subscribe(START_POSITION, AbortSignal.abort())];
    const next = taken(stays, 1);
    expect(await goes.next()).toMatchObject({ done: true });
    source.grow(1);
    expect(await next).toEqual([0]);
  });

  test('reports a failure to all waiting subscribers, and serves new subscriptions', async () => {
    source.failing = true;
    source.grow(3);
    const failed = [follow(START_POSITION), follow(START_POSITION)].map((each) => each.next());
    for (const each of failed) await expect(each).rejects.toThrow('no response');
    source.failing = false;
    expect(await taken(follow(START_POSITION), 3)).toEqual([0, 1, 2]);
  });

  test('caches at most six pages', async () => {
    source.grow(1_000);
    await taken(follow(START_POSITION), 1_000);
    expect((log as unknown as { readings: Map<bigint, unknown> }).readings.size).toBeLessThanOrEqual(6);
  });
});
