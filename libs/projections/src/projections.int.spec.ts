import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MemoryEventStore } from '#eventstore';
import {
  BlockedByEventError,
  type EventBatch,
  type EventSink,
  START_POSITION,
  UnknownEventError,
  type UnreadableEvent,
} from '#kernel';
import {
  createProjectionSink,
  listBlockedProjections,
  listSkippedEvents,
  type Projection,
  projections,
  rebuild,
  rebuildIfOutdated,
  skipEvent,
} from '#projections';
import { createHistoryArbitrary, createSampleHistory, toNewEvent } from '../../testing/src/scenarios/histories.ts';
import type { HistoryEvent } from '../../testing/src/scenarios/history-builder.ts';
import {
  computeTable,
  computeTables,
  ReadModelTables,
  splitIntoBatches,
} from '../../testing/src/world/read-model-tables.ts';

let books: ReadModelTables;
beforeAll(async () => {
  books = await ReadModelTables.open();
});
beforeEach(() => books.clear());
afterAll(() => books.close());

/** The last fencing token that was issued. */
let token = 0;
const sinkWithTurn = (projection: Projection) => createProjectionSink(projection, books.pool, ++token);

/** A writer with its own lease that has loaded its checkpoint. */
async function writer(projection: Projection): Promise<EventSink> {
  const sink = sinkWithTurn(projection);
  await sink.loadCheckpoint();
  return sink;
}

describe('the read models', () => {
  /**
   * Applies the batches to each projection: with one writer, which caches its rows, or with a new writer per batch.
   */
  async function project(batches: readonly EventBatch[], oneWriter: boolean): Promise<void> {
    const all = projections.map(async (projection) => {
      let sink = await writer(projection);
      for (const batch of batches) {
        if (!oneWriter) sink = await writer(projection);
        await sink.apply(batch);
      }
    });
    await Promise.all(all);
  }

  test.each([
    ['one writer', true],
    ['writers that take over from each other', false],
  ])('have the rows of a fold in memory with %s, for random splits into batches', async (_, oneWriter) => {
    const cuts = fc.array(fc.nat(), { maxLength: 8 });
    const tried = async (facts: readonly HistoryEvent[], where: readonly number[]) => {
      await books.clear();
      await project(splitIntoBatches(facts, where), oneWriter);
      expect(await books.readTables()).toEqual(computeTables(facts));
    };
    let last = Promise.resolve();
    const trial = fc.asyncProperty(createHistoryArbitrary(100), cuts, ({ events: facts }, where) => {
      last = tried(facts, where);
      return last;
    });
    await fc.assert(trial, { numRuns: 10, interruptAfterTimeLimit: 3_000 });
    await last; // an interrupted run would otherwise continue during the next test
  });

  test('have the rows of a fold in memory if every event is its own batch', async () => {
    const facts = createSampleHistory().events.slice(0, 80);
    await project(splitIntoBatches(facts, [...facts.keys()]), true);
    expect(await books.readTables()).toEqual(computeTables(facts));
  });
});

describe.each(projections.map((projection) => [projection.name, projection] as const))(
  'the writer of %s',
  (_, projection) => {
    const { events: facts } = createSampleHistory();
    const cuts = [60, 140]; // the second batch changes every table
    const [first, second, third] = splitIntoBatches(facts, cuts) as [EventBatch, EventBatch, EventBatch];
    const tableAfter = (batch: EventBatch) =>
      computeTable(
        projection,
        facts.filter(({ position }) => position <= batch.position),
      );

    async function standsBehind(batch: EventBatch): Promise<void> {
      expect(await books.readTable(projection)).toEqual(tableAfter(batch));
      expect(await books.readCheckpoint(projection)).toBe(batch.position);
    }

    test('applies a repeated batch once', async () => {
      const sink = await writer(projection);
      for (const batch of [first, first, second, first, second]) await sink.apply(batch);
      await standsBehind(second);
    });

    test('continues after the last batch of another writer', async () => {
      await (await writer(projection)).apply(first);
      const next = sinkWithTurn(projection);
      expect(await next.loadCheckpoint()).toBe(first.position);
      await next.apply(second);
      await standsBehind(second);
    });

    test('writes a batch once if there are two writers; the one with the lower token loses its lease', async () => {
      const both = [await writer(projection), await writer(projection)];
      for (const batch of [first, second]) {
        const [old, next] = await Promise.allSettled(both.map((sink) => sink.apply(batch)));
        expect(next?.status).toBe('fulfilled');
        expect(old).toMatchObject({ reason: { name: 'LeaseLostError' } });
        await standsBehind(batch);
      }
    });

    test('writes nothing after another writer took over, and cannot take the table back', async () => {
      const old = await writer(projection);
      await old.apply(first);
      const next = await writer(projection);
      await expect(old.apply(second)).rejects.toMatchObject({ name: 'LeaseLostError' });
      await next.apply(second);
      await expect(old.loadCheckpoint()).rejects.toMatchObject({ name: 'LeaseLostError' });
      await expect(old.apply(third)).rejects.toMatchObject({ name: 'LeaseLostError' });
      await standsBehind(second);
      await next.apply(third);
      await standsBehind(third);
    });

    test('clears its cache when it loads its checkpoint', async () => {
      const one = await writer(projection);
      await one.apply(first);
      const again = createProjectionSink(projection, books.pool, token);
      await again.loadCheckpoint();
      await again.apply(second);
      await one.loadCheckpoint();
      await one.apply(third);
      await standsBehind(third);
    });

    test('writes a batch completely or not at all, and can repeat it', async () => {
      const sink = await writer(projection);
      await sink.apply(first);
      await books.pool.query(`
      create function books.fail() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$;
      create trigger fails before insert on books.${projection.name} execute function books.fail()`);
      await expect(sink.apply(second)).rejects.toThrow('disk full');
      await books.pool.query('drop function books.fail() cascade');
      await standsBehind(first);
      await sink.apply(second);
      await standsBehind(second);
    });

    test('advances its checkpoint for batches without events for it', async () => {
      const sink = await writer(projection);
      await sink.apply({ events: [], position: 5n });
      expect(await books.readCheckpoint(projection)).toBe(5n);
      const published = { ...facts.find(({ type }) => type === 'PriceListPublished'), position: 9n } as HistoryEvent;
      await sink.apply({ events: [published], position: 9n });
      expect(await books.readCheckpoint(projection)).toBe(9n);
      expect(await books.readTable(projection)).toEqual([]);
    });

    test('starts before the first event', async () => {
      expect(await sinkWithTurn(projection).loadCheckpoint()).toBe(START_POSITION);
    });
  },
);

describe('an event that cannot be applied', () => {
  /** The sample events with positions from 0, as a store assigns them. */
  const facts = createSampleHistory().events.map((fact, i) => ({ ...fact, position: BigInt(i) }));
  const invoice = facts.findIndex(({ type }) => type === 'InvoiceIssued');
  const named = (name: string) => projections.find((each) => each.name === name) as Projection;
  const without = (projection: Projection, left: readonly number[]) =>
    computeTable(
      projection,
      facts.filter((_, i) => !left.includes(i)),
    );
  /** The sample events, with other data in the one at index `at`. */
  const withFact = (at: number, data: unknown) => facts.with(at, { ...facts[at], data } as HistoryEvent);
  /** The sample events, with more digits in the amount of an invoice than its column allows. */
  const tooLong = () => withFact(invoice, { ...facts[invoice]?.data, units: '9'.repeat(39) });
  const all = (history: readonly HistoryEvent[]) => splitIntoBatches(history)[0] as EventBatch;
  const at = (index: number) => facts[index]?.position as bigint;

  async function storeOf(history: readonly HistoryEvent[]): Promise<MemoryEventStore> {
    const store = new MemoryEventStore();
    for (const fact of history) await store.append(fact.stream, fact.revision - 1, [toNewEvent(fact)]);
    return store;
  }

  const rebuilding = async (history: readonly HistoryEvent[]) => ({
    store: await storeOf(history),
    databaseUrl: books.url,
    issueFencingToken: async () => ++token,
  });

  test.each<[string, () => readonly HistoryEvent[], string]>([
    ['its table rejects it', tooLong, 'numeric field overflow'],
    ['its fold throws', () => withFact(invoice, null), "Cannot read properties of null (reading 'accountId')"],
  ])('blocks only its read model, which has all earlier events, if %s', async (_, history, why) => {
    const topups = named('topups');
    for (const each of projections) {
      const applied = (await writer(each)).apply(all(history()));
      if (each === topups)
        await expect(applied).rejects.toMatchObject({ name: 'BlockedByEventError', position: at(invoice) });
      else await applied;
      expect(await books.readCheckpoint(each)).toBe(each === topups ? at(invoice - 1) : all(facts).position);
    }
    expect(await books.readTable(topups)).toEqual(computeTable(topups, facts.slice(0, invoice)));
    expect(await listBlockedProjections(books.pool)).toEqual([
      { projection: 'topups', position: at(invoice), reason: why },
    ]);
  });

  test('is skipped after approval, which is recorded, and applied by a rebuild once it is repaired', async () => {
    const topups = named('topups');
    const sink = await writer(topups);
    await expect(sink.apply(all(tooLong()))).rejects.toThrow(BlockedByEventError);
    const skip = { projection: 'topups', position: at(invoice), by: 'ann@desk', reason: 'case 7' };
    expect(await skipEvent(books.pool, { ...skip, position: at(invoice + 1) }, facts[invoice] as HistoryEvent)).toBe(
      false,
    );
    expect(await skipEvent(books.pool, skip, facts[invoice] as HistoryEvent)).toBe(true);
    await sink.apply(all(tooLong()));
    expect(await books.readTable(topups)).toEqual(without(topups, [invoice]));
    expect(await listBlockedProjections(books.pool)).toEqual([]);
    const trace = { reader: 'topups', position: at(invoice), by: 'ann@desk', why: 'case 7', type: 'InvoiceIssued' };
    expect(await listSkippedEvents(books.pool)).toMatchObject([trace]);

    await rebuild(topups, await rebuilding(tooLong()));
    expect(await listSkippedEvents(books.pool)).toMatchObject([trace]);
    await rebuild(topups, await rebuilding(facts));
    expect(await listSkippedEvents(books.pool)).toEqual([]);
    expect(await books.readTable(topups)).toEqual(computeTable(topups, facts));
  });

  test('blocks a rebuild as well, which leaves the table unchanged', async () => {
    const topups = named('topups');
    await (await writer(topups)).apply(all(facts));
    await expect(rebuild(topups, await rebuilding(tooLong()))).rejects.toThrow(BlockedByEventError);
    expect(await books.readTable(topups)).toEqual(computeTable(topups, facts));
    expect(await listBlockedProjections(books.pool)).toMatchObject([{ projection: 'topups' }]);
  });

  test('is skipped automatically if a newer build wrote it, and applied by a build that can read it', async () => {
    const balances = named('balances');
    const unread = (i: number, version: number): UnreadableEvent => ({
      event: { ...(facts[i] as HistoryEvent), metadata: { version } },
      error: new UnknownEventError('CreditAdded of version 99', 'an event'),
    });
    const [first = 0, second = 0] = facts.flatMap(({ type }, i) => (type === 'CreditAdded' ? [i] : []));
    const sink = await writer(balances);
    const events = facts.filter((_, i) => i !== first && i !== second);
    await sink.apply({ events, position: all(facts).position, unreadable: [unread(first, 99), unread(second, 99)] });
    expect(await books.readTable(balances)).toEqual(without(balances, [first, second]));
    expect((await listSkippedEvents(books.pool)).map(({ position, by }) => [position, by])).toEqual([
      [at(first), null],
      [at(second), null],
    ]);

    await rebuildIfOutdated(balances, books.pool, await rebuilding(facts));
    expect(await listSkippedEvents(books.pool)).toHaveLength(2);
    await books.pool.query('update es.skipped set version = 1'); // as if this build could read them
    await rebuildIfOutdated(balances, books.pool, await rebuilding(facts));
    expect(await listSkippedEvents(books.pool)).toEqual([]);
    expect(await books.readTable(balances)).toEqual(computeTable(balances, facts));
  });

  test('blocks a read model, if its upcaster fails, until an operator skips it', async () => {
    const balances = named('balances');
    const sink = await writer(balances);
    const unread = [{ event: facts[invoice] as HistoryEvent, error: new TypeError('no cents') }];
    const batch = { ...all(facts), events: facts.filter((_, i) => i !== invoice), unreadable: unread };
    await expect(sink.apply(batch)).rejects.toThrow(BlockedByEventError);
    const skip = { projection: 'balances', position: at(invoice), by: 'ann', reason: 'case 8' };
    await skipEvent(books.pool, skip, facts[invoice] as HistoryEvent);
    await sink.apply(batch);
    expect(await books.readCheckpoint(balances)).toBe(batch.position);
  });
});
