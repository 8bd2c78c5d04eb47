import { getEventListeners } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { Rejection } from '#kernel';
import { FakeClock } from '../../../testing/src/fake-clock.ts';
import { HoldQueue } from './hold-queue.ts';
import type { WaitSignals } from './payer.ts';

const time = new FakeClock('2026-11-28T12:00:00.000Z');
const unhandled: unknown[] = [];
const recordUnhandled = (error: unknown) => void unhandled.push(error);

beforeAll(() => {
  process.on('unhandledRejection', recordUnhandled);
});
afterAll(() => {
  process.off('unhandledRejection', recordUnhandled);
});
afterEach(() => {
  expect(unhandled).toEqual([]);
});

/** A queue, and the money for which its requests wait: each request takes a part of it. */
class Scene {
  readonly queue: HoldQueue;
  readonly attempts: string[] = [];
  readonly outcomes: string[] = [];

  constructor(
    public available = 0,
    maxWaiting = 64,
  ) {
    this.queue = new HoldQueue({ maxWaiting, maxWaitMs: 30_000 }, time.timers);
  }

  /** Lets a request take one part of the money. */
  send(name: string, signals: WaitSignals = {}, accountId = 'a'): void {
    const attempt = async (waiting?: number) => {
      this.attempts.push(`${name}:${waiting ?? 'first'}`);
      await Promise.resolve();
      if (this.available === 0) throw new Rejection('insufficient_balance', 'Insufficient balance', {}, true);
      this.available--;
    };
    void this.run(name, attempt, signals, accountId);
  }

  /** Lets a request run an attempt. */
  async run(
    name: string,
    attempt: (waiting?: number) => Promise<void>,
    signals: WaitSignals = {},
    accountId = 'a',
  ): Promise<void> {
    try {
      await this.queue.run(accountId, attempt, signals);
      this.outcomes.push(name);
    } catch (error) {
      this.outcomes.push(`${name}: ${(error as Error).message}`);
    }
  }

  /** Makes money available at this gateway. */
  async release(count: number): Promise<void> {
    this.available += count;
    this.queue.wake('a');
    await time.advance(0);
  }

  get accountsInQueue(): number {
    return (this.queue as unknown as { readonly lines: Map<string, unknown> }).lines.size;
  }
}

describe('a request', () => {
  test('does not wait if its first attempt succeeds', async () => {
    const scene = new Scene(1);
    scene.send('x');
    await time.advance(0);
    expect(scene.outcomes).toEqual(['x']);
    expect(scene.accountsInQueue).toBe(0);
  });
  test('tries again after 0.1 s, then every 0.25 s', async () => {
    const scene = new Scene();
    scene.send('x');
    await time.advance(99);
    expect(scene.attempts).toEqual(['x:first']);
    await time.advance(1);
    expect(scene.attempts).toEqual(['x:first', 'x:0']);
    await time.advance(249);
    expect(scene.attempts).toHaveLength(2);
    await time.advance(1);
    expect(scene.attempts).toEqual(['x:first', 'x:0', 'x:0']);
    await scene.release(1);
    expect(scene.outcomes).toEqual(['x']);
  });
  test('tries again at once when money was released, also if that happened during an attempt', async () => {
    const scene = new Scene();
    scene.send('x');
    scene.queue.wake('a'); // not in line yet
    await time.advance(0);
    await scene.release(1);
    expect(scene.outcomes).toEqual(['x']);
    const { promise, reject } = Promise.withResolvers<void>();
    let count = 0;
    void scene.run('y', async () => {
      count++;
      if (count === 2) await promise;
      if (count < 3) throw new Rejection('insufficient_balance', 'Insufficient balance', {}, true);
    });
    await time.advance(100);
    scene.queue.wake('a');
    reject(new Rejection('insufficient_balance', 'Insufficient balance', {}, true));
    await time.advance(0);
    expect(scene.outcomes).toEqual(['x', 'y']);
  });
  test('knows how many others of its account wait', async () => {
    const scene = new Scene();
    for (const name of ['x', 'y', 'z']) scene.send(name);
    await time.advance(100);
    expect(scene.attempts).toEqual(['x:first', 'y:first', 'z:first', 'x:2', 'y:2', 'z:2']);
    await scene.release(3);
  });
  test('is rejected after 30 s with a message that says so', async () => {
    const scene = new Scene();
    scene.send('x');
    await time.advance(29_999);
    expect(scene.outcomes).toEqual([]);
    await time.advance(1);
    expect(scene.outcomes).toEqual(['x: Insufficient balance, also after 30 s of waiting for running requests']);
    expect(scene.accountsInQueue).toBe(0);
  });
  test('does not wait for one before it that needs more', async () => {
    const scene = new Scene();
    const keepWaiting = async () => {
      throw new Rejection('insufficient_balance', 'Insufficient balance', {}, true);
    };
    void scene.run('large', keepWaiting);
    await time.advance(0);
    scene.send('small');
    await time.advance(0);
    scene.available = 1;
    await time.advance(100);
    expect(scene.outcomes).toEqual(['small']);
    await time.advance(30_000);
    expect(scene.accountsInQueue).toBe(0);
  });
  test('ends with an error that another attempt cannot change, and others go on', async () => {
    const scene = new Scene();
    let count = 0;
    void scene.run('x', async () => {
      count++;
      if (count === 1) throw new Rejection('insufficient_balance', 'Insufficient balance', {}, true);
      throw new Rejection('key_revoked', 'The key was revoked');
    });
    await time.advance(0);
    scene.send('y');
    await time.advance(100);
    expect(scene.outcomes).toEqual(['x: The key was revoked']);
    expect(scene.attempts).toEqual(['y:1']);
    await scene.release(1);
    expect(scene.outcomes.at(-1)).toBe('y');
    expect(scene.accountsInQueue).toBe(0);
  });
});

describe('a line', () => {
  test('serves requests in the order of their arrival', async () => {
    const scene = new Scene();
    for (const name of ['x', 'y', 'z']) scene.send(name);
    await time.advance(0);
    await scene.release(2);
    expect(scene.outcomes).toEqual(['x', 'y']);
    await scene.release(1);
    expect(scene.outcomes).toEqual(['x', 'y', 'z']);
    expect(scene.accountsInQueue).toBe(0);
  });
  test('makes a request that arrives later wait without an attempt', async () => {
    const scene = new Scene();
    scene.send('x');
    await time.advance(0);
    scene.available = 1;
    scene.send('y');
    await time.advance(0);
    expect(scene.attempts).toEqual(['x:first']);
    await time.advance(100);
    expect(scene.outcomes).toEqual(['x']);
    await scene.release(1);
  });
  test('lets a request that arrives later try within 25 ms', async () => {
    const scene = new Scene();
    scene.send('x');
    await time.advance(110);
    scene.send('y');
    scene.send('z', {}, 'other account');
    await time.advance(24);
    expect(scene.attempts).toEqual(['x:first', 'x:0', 'z:first']);
    await time.advance(1);
    expect(scene.attempts.slice(3)).toEqual(['x:1', 'y:1']);
    scene.queue.wake('other account');
    await scene.release(3);
  });
  test('that is full lets further requests of the account try once', async () => {
    const scene = new Scene(0, 2);
    scene.send('x');
    scene.send('y');
    await time.advance(0);
    scene.send('z');
    scene.send('other account', {}, 'b');
    await time.advance(0);
    expect(scene.attempts.slice(2)).toEqual(['z:2', 'other account:first']);
    expect(scene.outcomes).toEqual(['z: Insufficient balance']);
    await scene.release(3);
    await time.advance(250);
    expect(scene.outcomes.slice(1).toSorted()).toEqual(['other account', 'x', 'y']);
    expect(scene.accountsInQueue).toBe(0);
  });
  test('in which none may wait lets each request try once, as if none else waited', async () => {
    const scene = new Scene(1, 0);
    scene.send('x');
    await time.advance(0);
    scene.send('y');
    await time.advance(0);
    expect(scene.attempts).toEqual(['x:0', 'y:0']);
    expect(scene.outcomes).toEqual(['x', 'y: Insufficient balance']);
  });
});

describe('the wait ends', () => {
  test('when the request is aborted, with the reason', async () => {
    const scene = new Scene();
    const { signal, abort } = createAbort();
    scene.send('x', { signal });
    scene.send('y');
    await time.advance(0);
    abort();
    await time.advance(0);
    expect(scene.outcomes).toEqual(['x: The request took too long']);
    await scene.release(1);
    expect(scene.outcomes.at(-1)).toBe('y');
  });
  test('if the request was aborted before', async () => {
    const scene = new Scene();
    const { signal, abort } = createAbort();
    abort();
    scene.send('x', { signal });
    await time.advance(0);
    expect(scene.outcomes).toEqual(['x: The request took too long']);
    expect(scene.accountsInQueue).toBe(0);
  });
  test('when the client has disconnected, and the next request continues', async () => {
    const scene = new Scene();
    const { promise: disconnected, resolve: disconnect } = Promise.withResolvers<void>();
    scene.send('x', { disconnected });
    scene.send('y');
    await time.advance(0);
    scene.available = 1;
    disconnect();
    await time.advance(100);
    expect(scene.outcomes).toEqual(['x: The client disconnected before the end of the response', 'y']);
    expect(scene.accountsInQueue).toBe(0);
  });
  test('for a request that is not the first in line too', async () => {
    const scene = new Scene();
    const { promise: disconnected, resolve: disconnect } = Promise.withResolvers<void>();
    scene.send('x');
    scene.send('y', { disconnected });
    await time.advance(0);
    disconnect();
    await time.advance(0);
    expect(scene.outcomes).toEqual(['y: The client disconnected before the end of the response']);
    await scene.release(1);
    expect(scene.outcomes.at(-1)).toBe('x');
  });
  test('not for a request that is served without its client', async () => {
    const scene = new Scene();
    const { signal } = createAbort();
    scene.send('stored', { signal, disconnected: undefined });
    await time.advance(29_000);
    await scene.release(1);
    expect(scene.outcomes).toEqual(['stored']);
  });
  test('without a listener that remains, and with one reaction to the disconnect', async () => {
    const scene = new Scene();
    const { signal } = createAbort();
    const disconnected = new Promise<void>(() => {});
    const react = jest.spyOn(disconnected, 'then');
    scene.send('x', { signal, disconnected });
    await time.advance(20_000);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await scene.release(1);
    expect(scene.outcomes).toEqual(['x']);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(react).toHaveBeenCalledTimes(1);
  });
});

function createAbort() {
  const controller = new AbortController();
  const abort = () => controller.abort(new UpstreamError('timeout', 'The request took too long'));
  return { signal: controller.signal, abort };
}
