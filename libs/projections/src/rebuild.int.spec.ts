import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import { type EventBatch, LeaseLostError, pump, START_POSITION } from '#kernel';
import {
  createProjectionSink,
  type Projection,
  ProjectionProgress,
  projections,
  rebuild,
  rebuildIfOutdated,
} from '#projections';
import { createTestRuntime } from '#testing';
import { sampleCases } from '../../testing/src/sample-cases.ts';
import { createSampleHistory, toNewEvent } from '../../testing/src/scenarios/histories.ts';
import type { HistoryEvent } from '../../testing/src/scenarios/history-builder.ts';
import { computeTable, ReadModelTables } from '../../testing/src/world/read-model-tables.ts';

/** Only a projection that does not advance takes longer. */
const TIMEOUT_MS = 300_000;
const { events: facts } = createSampleHistory();

/** A store that runs a callback whenever its history is read. */
class WatchedStore extends MemoryEventStore {
  readings = 0;
  /** Called at the start of each reading with its number. */
  meanwhile: (reading: number) => Promise<void> = async () => {};
  private appended = 0;

  override async *readAll(after: bigint): AsyncGenerator<EventBatch> {
    const reading = ++this.readings;
    await this.meanwhile(reading);
    yield* super.readAll(after);
  }

  /** Appends the sample events up to the index `end`, exclusive. */
  async appendUpTo(end: number): Promise<void> {
    for (const fact of facts.slice(this.appended, end))
      await this.append(fact.stream, fact.revision - 1, [toNewEvent(fact)]);
    this.appended = Math.max(this.appended, end);
  }

  async all(): Promise<HistoryEvent[]> {
    const all: HistoryEvent[] = [];
    for await (const { events } of super.readAll(START_POSITION)) all.push(...(events as HistoryEvent[]));
    return all;
  }
}

let books: ReadModelTables;
let token = 0;
const drawToken = async () => ++token;
let store: WatchedStore;
let stop: AbortController;
let pumping: Promise<unknown>;
let alarms: string[];

beforeAll(async () => {
  books = await ReadModelTables.open();
});
beforeEach(async () => {
  await books.clear();
  store = new WatchedStore();
  stop = new AbortController();
  pumping = Promise.resolve();
  alarms = [];
});
afterEach(async () => {
  stop.abort();
  await pumping;
});
afterAll(() => books.close());

const options = () => ({ store, databaseUrl: books.url, issueFencingToken: drawToken });

/**
 * Runs all projections like the projector until the end of the test. A projection that loses its lease takes a new one.
 */
function goLive(): void {
  const alarm = (_: string, error: unknown) => void alarms.push((error as Error).name);
  const turn = async (projection: Projection): Promise<void> => {
    try {
      await pump(follow, createProjectionSink(projection, books.pool, await drawToken()), stop.signal, runtime);
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      alarm('', error);
      await turn(projection);
    }
  };
  const runtime = createTestRuntime({ sleep: async () => {}, reportError: alarm });
  const unwatched: MemoryEventStore = Object.create(store, { readAll: { value: MemoryEventStore.prototype.readAll } });
  const follow = unwatched.subscribe.bind(unwatched);
  pumping = Promise.all(projections.map(turn));
}

async function caughtUp(): Promise<void> {
  const end = (await store.all()).at(-1)?.position ?? START_POSITION;
  const names = projections.map(({ name }) => name);
  expect(await new ProjectionProgress(books.pool).waitUntilApplied(names, end, TIMEOUT_MS)).toBe(true);
}

const spoil = ({ name }: Projection) =>
  books.pool.query(`delete from ${name} where ctid in (select ctid from ${name} limit 3)`);

async function isAsItMustBe(projection: Projection): Promise<void> {
  expect(await books.readTable(projection)).toEqual(computeTable(projection, await store.all()));
}

const drafts = async () =>
  (await books.pool.query(`select nspname from pg_namespace where nspname like 'books_rebuild%'`)).rowCount;

const named = (some: readonly Projection[]) => some.map((each) => [each.name, each] as const);

describe.each(named(projections))('rebuilding %s', (_, projection) => {
  test('reproduces the projected table and repairs a damaged one', async () => {
    await store.appendUpTo(facts.length);
    goLive();
    await caughtUp();
    const before = await books.readTable(projection);
    await spoil(projection);
    expect(await rebuild(projection, options())).toBe(facts.length);
    expect(await books.readTable(projection)).toEqual(before);
    await isAsItMustBe(projection);
    expect(await drafts()).toBe(0);
  });
});

describe.each(named(sampleCases(projections, 3)))('rebuilding %s', (_, projection) => {
  test('runs while the projector continues, which then switches to the new table', async () => {
    await store.appendUpTo(60);
    goLive();
    await caughtUp();
    await spoil(projection);
    store.meanwhile = async (reading) => {
      await store.appendUpTo(60 + 30 * reading);
      // Projectors continue during the first reading of the history; during the second they wait for the lock.
      if (reading === 1) await caughtUp();
    };
    await rebuild(projection, options());
    await store.appendUpTo(facts.length);
    await caughtUp();
    for (const each of projections) await isAsItMustBe(each);
    expect(new Set(alarms)).toEqual(new Set(['LeaseLostError']));
  });

  test.each([
    ['reconnects if connections break while it fills the table', 1, expect.objectContaining({ status: 'fulfilled' })],
    [
      'fails and leaves the old table if its connections break while it holds the lock',
      2,
      expect.objectContaining({ status: 'rejected' }),
    ],
  ])('%s', async (_, broken, outcome) => {
    await store.appendUpTo(100);
    goLive();
    await caughtUp();
    const end = `select pg_terminate_backend(pid, 5000) from pg_stat_activity
                  where datname = current_database() and application_name = 'countinghouse-rebuild'`;
    store.meanwhile = async (reading) => {
      if (reading === broken) await books.pool.query(end);
    };
    expect(await Promise.allSettled([rebuild(projection, options())])).toEqual([outcome]);
    await isAsItMustBe(projection);
  });

  test('leaves the old table unchanged if it crashes, and can be repeated', async () => {
    await store.appendUpTo(100);
    goLive();
    await caughtUp();
    for (const crashingReading of [1, 2]) {
      store.readings = 0;
      store.meanwhile = async (reading) => {
        if (reading === crashingReading) throw new Error('killed');
      };
      await expect(rebuild(projection, options())).rejects.toThrow('killed');
      await isAsItMustBe(projection);
    }
    store.meanwhile = async () => {};
    await store.appendUpTo(facts.length);
    await caughtUp();
    await isAsItMustBe(projection);
    expect(alarms).toEqual([]);
    await spoil(projection);
    await rebuild(projection, options());
    await isAsItMustBe(projection);
  });
});

describe('a rebuild', () => {
  const [balances, journal] = projections as [Projection, Projection];

  test('publishes its progress while it runs', async () => {
    await store.appendUpTo(facts.length);
    await createProjectionSink(balances, books.pool, await drawToken()).loadCheckpoint();
    const progress = new ProjectionProgress(books.pool);
    const place = async () => (await progress.loadActivePositions(['balances'])).get('balances');
    const end = (await store.all()).at(-1)?.position;
    store.meanwhile = async (reading) => {
      if (reading === 2) expect(await place()).toEqual({ position: START_POSITION, rebuiltTo: end });
    };
    expect(await place()).toEqual({ position: START_POSITION, rebuiltTo: undefined });
    await rebuild(balances, options());
    expect(store.readings).toBe(2);
    expect(await place()).toEqual({ position: end, rebuiltTo: undefined });
  });

  test('removes its progress when it fails', async () => {
    await store.appendUpTo(facts.length);
    await createProjectionSink(balances, books.pool, await drawToken()).loadCheckpoint();
    store.meanwhile = async (reading) => {
      if (reading === 2) throw new Error('killed');
    };
    await expect(rebuild(balances, options())).rejects.toThrow('killed');
    const places = await new ProjectionProgress(books.pool).loadActivePositions(['balances']);
    expect(places.get('balances')).toEqual({ position: START_POSITION, rebuiltTo: undefined });
  });

  test('shows readers the old table while it reads the events', async () => {
    await store.appendUpTo(100);
    goLive();
    await caughtUp();
    const old = await books.readTable(journal);
    const seen: unknown[] = [];
    store.meanwhile = async () => void seen.push(await books.readTable(journal));
    await rebuild(journal, options());
    expect(seen).toEqual([old, old]);
  });

  test('is not overwritten by rows of the damaged table that the projector has cached', async () => {
    await store.appendUpTo(60);
    await rebuild(balances, options());
    await books.pool.query('update balances set available = available + 1');
    goLive();
    await store.appendUpTo(100);
    await caughtUp();
    await rebuild(balances, options());
    await isAsItMustBe(balances);
    await store.appendUpTo(facts.length);
    await caughtUp();
    await isAsItMustBe(balances);
  });

  test('fills a read model that was never written', async () => {
    await store.appendUpTo(facts.length);
    await rebuild(balances, options());
    await isAsItMustBe(balances);
    goLive();
    await caughtUp();
    await isAsItMustBe(balances);
  });

  test('results in an empty table if there are no events', async () => {
    expect(await rebuild(balances, options())).toBe(0);
    expect(await books.readTable(balances)).toEqual([]);
    expect(await books.readCheckpoint(balances)).toBe(START_POSITION);
  });

  test('replaces the schema of a crashed rebuild and drops its own', async () => {
    await store.appendUpTo(20);
    await books.pool.query(
      'create schema books_rebuild_balances; create table books_rebuild_balances.balances (x int)',
    );
    await rebuild(balances, options());
    await isAsItMustBe(balances);
    expect(await drafts()).toBe(0);
  });

  test('fails with LeaseLostError if its token is lower than that of the projector, which continues', async () => {
    await store.appendUpTo(60);
    const over = await drawToken();
    goLive();
    await caughtUp();
    await expect(rebuild(balances, { ...options(), issueFencingToken: async () => over })).rejects.toThrow(
      LeaseLostError,
    );
    await store.appendUpTo(facts.length);
    await caughtUp();
    await isAsItMustBe(balances);
    expect(alarms).toEqual([]);
  });

  test('fails without filling the table if its signal is aborted', async () => {
    await store.appendUpTo(60);
    await expect(rebuild(balances, { ...options(), signal: AbortSignal.abort() })).rejects.toThrow(/abort/i);
    expect(await books.readTable(balances)).toEqual([]);
  });
});

describe('a read model', () => {
  const [balances] = projections as [Projection];

  beforeEach(async () => {
    await store.appendUpTo(60);
    await rebuild(balances, options());
    await spoil(balances);
  });

  test('is rebuilt once if its version changes, and can then be written with the same fencing token', async () => {
    const token = await drawToken();
    const next = { ...balances, version: balances.version + 1 };
    await rebuildIfOutdated(next, books.pool, { ...options(), issueFencingToken: async () => token });
    await isAsItMustBe(next);
    const end = (await store.all()).at(-1)?.position;
    expect(await createProjectionSink(next, books.pool, token).loadCheckpoint()).toBe(end);
    store.readings = 0;
    await rebuildIfOutdated(next, books.pool, options());
    expect(store.readings).toBe(0);
  });

  test('is not rebuilt if its version is unchanged, or if it was never written', async () => {
    store.readings = 0;
    await rebuildIfOutdated(balances, books.pool, options());
    await books.clear();
    await rebuildIfOutdated({ ...balances, version: 7 }, books.pool, options());
    expect(store.readings).toBe(0);
  });
});
