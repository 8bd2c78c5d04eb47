import { describe, expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import {
  AppendTooLargeError,
  type Cause,
  createCauseFromEvent,
  createCommandRunner,
  createRootCause,
  type Decider,
  type EventStore,
  type Message,
  NO_SNAPSHOTS,
  NO_STREAM,
  Rejection,
  type Runtime,
  type Snapshot,
  type SnapshotStore,
  StoreUnavailableError,
  UnknownEventError,
  UnknownOutcomeError,
  withUpcasting,
} from '#kernel';
import { createTestRuntime } from '#testing';

type Added = Message<'Added', { readonly amount: number }>;
type Add = Message<'Add', { readonly amount: number; readonly limit?: number }>;

/** A counter that rejects additions beyond a limit. An addition of zero is already fulfilled. */
const counter: Decider<Add, number, Added> = {
  getInitialState: () => 0,
  evolve: (total, { data }) => total + data.amount,
  decide({ data: { amount, limit = Number.POSITIVE_INFINITY } }, total) {
    if (total + amount > limit) throw new Rejection('limit', `${total} is enough`);
    return amount === 0 ? [] : [{ type: 'Added', data: { amount } }];
  },
};

let ids = 0;
const runtime: Runtime & { readonly slept: number[]; readonly alarms: string[] } = {
  ...createTestRuntime(),
  slept: [],
  alarms: [],
  generateId: () => `id-${ids++}`,
  async sleep(milliseconds) {
    this.slept.push(milliseconds);
  },
  reportError(problem) {
    this.alarms.push(problem);
  },
};

function runnerOn(store: EventStore, snapshots?: SnapshotStore, decider = counter, triedForMs = 10_000) {
  const codec = { version: '1', encode: (total: number) => total, decode: (json: never) => json as number };
  const kept = snapshots ? { snapshots: { store: snapshots, codec } } : {};
  const { run, read } = createCommandRunner({
    category: 'counter',
    decider,
    store,
    runtime,
    timeoutMs: triedForMs,
    ...kept,
  });
  return {
    run: (id: string, command: Add, cause: Cause = createRootCause('me', 'request')) => run(id, command, cause),
    read,
  };
}

const add = (amount: number, limit?: number): Add => ({
  type: 'Add',
  data: limit === undefined ? { amount } : { amount, limit },
});

/** The counter with events of about this many bytes. */
function noting(bytes: number): typeof counter {
  const note = 'x'.repeat(bytes);
  return {
    ...counter,
    decide: ({ data }) => [{ type: 'Added', data: { amount: data.amount, note } as Added['data'] }],
  };
}

async function stored(store: EventStore): Promise<number[]> {
  const amounts: number[] = [];
  for await (const batch of store.read('counter-a', NO_STREAM)) {
    amounts.push(...batch.map(({ data }) => (data as Added['data']).amount));
  }
  return amounts;
}

/** A store that counts its calls and can run code before and after an append. */
class Interfered extends MemoryEventStore {
  appends = 0;
  reads = 0;
  before: (() => Promise<void>) | undefined;
  after: (() => void | Promise<void>) | undefined;

  override async append(...args: Parameters<EventStore['append']>) {
    this.appends++;
    const interfere = this.before;
    this.before = undefined;
    await interfere?.();
    const result = await super.append(...args);
    const lose = this.after;
    this.after = undefined;
    await lose?.();
    return result;
  }

  override read(...args: Parameters<MemoryEventStore['read']>) {
    this.reads++;
    return super.read(...args);
  }

  /** Appends as another process would. */
  elsewhere(amount: number, expected: number) {
    return super.append('counter-a', expected, [
      { id: runtime.generateId(), type: 'Added', data: { amount }, metadata: {} },
    ]);
  }
}

describe('run', () => {
  test('decides waiting commands one after the other and appends their events together', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    const outcomes = await Promise.all([1, 2, 3].map((amount) => runner.run('a', add(amount))));
    expect(outcomes.map(({ events }) => events[0]?.data.amount)).toEqual([1, 2, 3]);
    expect(await stored(store)).toEqual([1, 2, 3]);
    expect(store.appends).toBe(1);
  });

  test('runs the other commands of a group if one is rejected', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    const outcomes = await Promise.allSettled([
      runner.run('a', add(4)),
      runner.run('a', add(9, 5)),
      runner.run('a', add(1, 5)),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await stored(store)).toEqual([4, 1]);
  });

  test('accepts exactly as many concurrent commands as a limit allows', async () => {
    const store = new Interfered();
    const runners = [runnerOn(store), runnerOn(store), runnerOn(store)];
    const outcomes = await Promise.allSettled(
      Array.from({ length: 300 }, (_, i) => (runners[i % 3] as (typeof runners)[0]).run('a', add(1, 50))),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(50);
    expect(await stored(store)).toHaveLength(50);
  });

  test('decides a command again on the new state after another writer appended first', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    await runner.run('a', add(1));
    store.before = async () => void (await store.elsewhere(7, 0));
    await expect(runner.run('a', add(2, 9))).rejects.toMatchObject({ code: 'limit' });
    expect(await stored(store)).toEqual([1, 7]);
  });

  test('returns a rejection only for a state that the store has confirmed', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    await runner.run('a', add(5));
    await store.elsewhere(-5, 0);
    await expect(runner.run('a', add(3, 5))).resolves.toMatchObject({ revision: 2 });
  });

  test('returns "already fulfilled" only for a state that the store has confirmed', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    await runner.run('a', add(5));
    await store.elsewhere(1, 0);
    await expect(runner.run('a', add(0))).resolves.toMatchObject({ events: [], revision: 1 });
  });

  test('retries an append whose response was lost, and stores it once', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    store.after = () => {
      throw new StoreUnavailableError('lost');
    };
    await expect(runner.run('a', add(3))).resolves.toMatchObject({ revision: 0 });
    expect(await stored(store)).toEqual([3]);
    expect(store.appends).toBe(2);
  });

  test('stores an append once if its response is lost and another writer appends after it', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    store.after = () => {
      store.before = async () => void (await store.elsewhere(9, 0));
      throw new StoreUnavailableError('lost');
    };
    await expect(runner.run('a', add(3))).resolves.toMatchObject({ revision: 0 });
    await expect(runner.run('a', add(1, 100))).resolves.toMatchObject({ revision: 2 });
    expect(await stored(store)).toEqual([3, 9, 1]);
  });

  test('rejects a command while the store stays unavailable, and runs the next when the store is back', async () => {
    const store = new Interfered();
    const runner = runnerOn(store);
    const away = () => {
      store.before = async () => {
        away();
        throw new StoreUnavailableError('away');
      };
    };
    away();
    await expect(runner.run('a', add(1))).rejects.toBeInstanceOf(StoreUnavailableError);
    store.before = undefined;
    await expect(runner.run('a', add(1))).resolves.toMatchObject({ revision: 0 });
  });

  test('rejects a command and those queued after it in time if the store does not respond', async () => {
    const store = new Interfered();
    const runner = runnerOn(store, undefined, counter, 20);
    const silence = Promise.withResolvers<void>();
    const behind = Promise.withResolvers<unknown>();
    store.after = () => {
      behind.resolve(runner.run('a', add(2)).catch((error) => error));
      return silence.promise;
    };
    await expect(runner.run('a', add(1))).rejects.toBeInstanceOf(UnknownOutcomeError);
    const nothingSent = await behind.promise;
    expect(nothingSent).toBeInstanceOf(StoreUnavailableError);
    expect(nothingSent).not.toBeInstanceOf(UnknownOutcomeError);
    silence.resolve();
    await expect(runner.run('a', add(4))).resolves.toMatchObject({ revision: 1 });
    expect(await stored(store)).toEqual([1, 4]);
  });

  test('does not read a stream from its start again after the store was briefly unavailable', async () => {
    const store = new Interfered();
    const runner = runnerOn(store, undefined, counter, 20);
    await store.elsewhere(1, NO_STREAM);
    store.after = () => new Promise(() => {});
    await expect(runner.run('a', add(2))).rejects.toBeInstanceOf(UnknownOutcomeError);
    await expect(runner.run('a', add(4))).resolves.toMatchObject({ revision: 2, state: 7 });
    expect(store.reads).toBe(2); // the complete stream, then the events since
  });

  test('rejects only the command for which the decider throws', async () => {
    const store = new Interfered();
    const broken: typeof counter = {
      ...counter,
      decide(command, total) {
        if (command.data.amount === 13) throw new TypeError('a bug');
        return counter.decide(command, total);
      },
    };
    const runner = runnerOn(store, undefined, broken);
    const outcomes = await Promise.allSettled([
      runner.run('a', add(1)),
      runner.run('a', add(13)),
      runner.run('a', add(2)),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await stored(store)).toEqual([1, 2]);
  });

  test('splits events that are too large for one append into several appends, in order', async () => {
    const store = new Interfered();
    const noted = runnerOn(store, undefined, noting(10_000));
    const outcomes = await Promise.all(Array.from({ length: 256 }, (_, i) => noted.run('a', add(i + 1))));
    expect(outcomes.map(({ revision }) => revision)).toEqual(expect.arrayContaining([63, 127, 191, 255]));
    expect(store.reads).toBe(1); // to load the stream: the rejected append changed nothing
    expect(await stored(store)).toEqual(Array.from({ length: 256 }, (_, i) => i + 1));
  });

  test.each([
    ['is too large by itself', 'x'.repeat(600_000), AppendTooLargeError],
    ['cannot be stored', 1n, TypeError],
  ])('rejects and reports only the command whose event %s', async (_, note, error) => {
    const store = new Interfered();
    const noted = runnerOn(store, undefined, {
      ...counter,
      decide: ({ data: { amount } }) => [{ type: 'Added', data: { amount, ...(amount === 13 ? { note } : {}) } }],
    });
    runtime.alarms.length = 0;
    const amounts = Array.from({ length: 20 }, (_, i) => i + 1);
    const outcomes = await Promise.allSettled(amounts.map((amount) => noted.run('a', add(amount))));
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    expect(refused).toEqual([{ status: 'rejected', reason: expect.any(error) }]);
    expect(await stored(store)).toEqual(amounts.filter((amount) => amount !== 13));
    expect(runtime.alarms).toEqual(['counter-a: the store rejects the events of Add']);
    await expect(noted.run('a', add(1))).resolves.toMatchObject({ revision: 19 });
  });

  test('saves a snapshot after 1,000 events, and appends to a stream loaded with or without it', async () => {
    const store = new Interfered();
    const kept = new Map<string, Snapshot>();
    const snapshots: SnapshotStore = {
      load: async (stream) => kept.get(stream),
      save: async (stream, _, snapshot) => void kept.set(stream, snapshot),
      drop: async (stream) => void kept.delete(stream),
    };
    const runner = runnerOn(store, snapshots);
    for (let i = 0; i < 6; i++) await Promise.all(Array.from({ length: 200 }, () => runner.run('a', add(1))));
    expect(kept.get('counter-a')).toMatchObject({ state: 1000, revision: 999 });
    await expect(runnerOn(store, snapshots).run('a', add(1, 1201))).resolves.toMatchObject({ revision: 1200 });
    kept.clear();
    await expect(runnerOn(store, snapshots).run('a', add(1, 1202))).resolves.toMatchObject({ revision: 1201 });
  });

  test('reports a snapshot that cannot be saved, and continues', async () => {
    const snapshots: SnapshotStore = {
      ...NO_SNAPSHOTS,
      save: async () => {
        throw new Error('disk full');
      },
    };
    const runner = runnerOn(new Interfered(), snapshots);
    for (let i = 0; i < 6; i++) await Promise.all(Array.from({ length: 200 }, () => runner.run('a', add(1))));
    await runner.run('a', add(1));
    expect(runtime.alarms).toContain('the snapshot of counter-a could not be saved');
  });
});

test('read returns a state that includes the events of other writers, and appends nothing', async () => {
  const store = new MemoryEventStore();
  const [one, other] = [runnerOn(store), runnerOn(store)];
  expect(await one.read('a')).toBe(0);
  await one.run('a', add(1));
  await other.run('a', add(2));
  expect([await one.read('a'), await other.read('a')]).toEqual([3, 3]);
  await one.run('a', add(4));
  expect(await stored(store)).toEqual([1, 2, 4]);
});

describe('a stream with an event that this build cannot read', () => {
  const known = { upcasters: { Added: [] }, revision: 1, skippable: new Set<string>() };
  const newer = { id: 'newer', type: 'Multiplied', data: { by: 2 }, metadata: {} };

  test('rejects commands even if its state was cached, while another stream accepts a command', async () => {
    const store = new MemoryEventStore();
    const runner = runnerOn(withUpcasting(store, known));
    await runner.run('a', add(5));
    await store.append('counter-a', 0, [newer]);
    runtime.alarms.length = 0;
    for (const command of [add(1), add(0), add(9, 5)])
      await expect(runner.run('a', command)).rejects.toBeInstanceOf(UnknownEventError);
    expect(runtime.alarms).toEqual(Array(3).fill('counter-a cannot be used'));
    expect(await stored(store)).toHaveLength(2);
    await expect(runner.run('b', add(1))).resolves.toMatchObject({ revision: 0 });
  });
});

test('a group commit stores the causation id of an event if it differs from the correlation id', async () => {
  const store = new MemoryEventStore();
  const runner = runnerOn(store);
  const saga = createCauseFromEvent({ id: 'fact-7', metadata: { $correlationId: 'r1' } }, 'saga:s');
  const old = createCauseFromEvent({ id: 'fact-8', metadata: {} }, 'saga:s');
  await Promise.all([createRootCause('key:k', 'r1'), saga, old].map((cause) => runner.run('a', add(1), cause)));
  const causes: unknown[] = [];
  for await (const facts of store.read('counter-a', NO_STREAM)) causes.push(...facts.map(({ metadata }) => metadata));
  expect(causes).toEqual([
    { actor: 'key:k', $correlationId: 'r1' },
    { actor: 'saga:s', $correlationId: 'r1', $causationId: 'fact-7' },
    { actor: 'saga:s', $correlationId: 'fact-8' },
  ]);
});
