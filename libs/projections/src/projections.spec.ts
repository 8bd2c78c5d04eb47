import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Batch, type Sink, START } from '#kernel';
import { type Projection, projections, sinkOf } from '#projections';
import { Books, batchesOf, tableOf, tablesOf } from '../../testing/src/books.ts';
import { type Fact, histories, someHistory } from '../../testing/src/histories.ts';

let books: Books;
beforeAll(async () => {
  books = await Books.open();
});
beforeEach(() => books.clear());
afterAll(() => books.close());

/** A writer that has asked where it is. */
async function writer(projection: Projection): Promise<Sink> {
  const sink = sinkOf(projection, books.pool);
  await sink.checkpoint();
  return sink;
}

describe('the read models', () => {
  /** One writer remembers its rows from batch to batch, others follow each other and remember nothing. */
  async function project(batches: readonly Batch[], oneWriter: boolean): Promise<void> {
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
  ])('have the same in them with %s, however the facts come in batches', async (_, oneWriter) => {
    const cuts = fc.array(fc.nat(), { maxLength: 8 });
    const trial = fc.asyncProperty(histories(100), cuts, async ({ facts }, where) => {
      await books.clear();
      await project(batchesOf(facts, where), oneWriter);
      expect(await books.tables()).toEqual(tablesOf(facts));
    });
    await fc.assert(trial, { numRuns: 10, interruptAfterTimeLimit: 3_000 });
  });

  test('have the same in them when every fact comes alone', async () => {
    const facts = someHistory().facts.slice(0, 80);
    await project(batchesOf(facts, [...facts.keys()]), true);
    expect(await books.tables()).toEqual(tablesOf(facts));
  });
});

describe.each(projections.map((projection) => [projection.name, projection] as const))(
  'the writer of %s',
  (_, projection) => {
    const { facts } = someHistory();
    const cuts = [60, 90, 120] as const;
    const [first, second, third] = batchesOf(facts, cuts) as [Batch, Batch, Batch];
    const tableAfter = (batch: Batch) =>
      tableOf(
        projection,
        facts.filter(({ position }) => position <= batch.position),
      );

    async function standsBehind(batch: Batch): Promise<void> {
      expect(await books.table(projection)).toEqual(tableAfter(batch));
      expect(await books.checkpoint(projection)).toBe(batch.position);
    }

    test('takes a batch that comes again as one', async () => {
      const sink = await writer(projection);
      for (const batch of [first, first, second, first, second]) await sink.apply(batch);
      await standsBehind(second);
    });

    test('goes on where another one has stopped, also when that one never heard that it was done', async () => {
      await (await writer(projection)).apply(first);
      const next = sinkOf(projection, books.pool);
      expect(await next.checkpoint()).toBe(first.position);
      await next.apply(second);
      await standsBehind(second);
    });

    test('writes a batch once when there are two of them, and one is told that it has lost its turn', async () => {
      const both = [await writer(projection), await writer(projection)];
      for (const batch of [first, second]) {
        const outcomes = await Promise.allSettled(both.map((sink) => sink.apply(batch)));
        expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
        const lost = outcomes.find((outcome) => outcome.status === 'rejected');
        expect(lost?.reason).toMatchObject({ name: 'TurnLost' });
        await standsBehind(batch);
        for (const sink of both.toReversed()) expect(await sink.checkpoint()).toBe(batch.position);
      }
    });

    test('writes nothing once it has lost its turn, until it asks where it is', async () => {
      const [old, next] = [await writer(projection), await writer(projection)];
      await expect(old.apply(first)).rejects.toMatchObject({ name: 'TurnLost' });
      await next.apply(first);
      await expect(old.apply(second)).rejects.toMatchObject({ name: 'TurnLost' });
      await standsBehind(first);
      expect(await old.checkpoint()).toBe(first.position);
      await old.apply(second);
      await standsBehind(second);
    });

    test('remembers nothing of before another one had its turn', async () => {
      const one = await writer(projection);
      await one.apply(first);
      await (await writer(projection)).apply(second);
      await one.checkpoint();
      await one.apply(third);
      await standsBehind(third);
    });

    test('writes all of a batch or nothing, and can write it again', async () => {
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

    test('moves on where there is nothing for it', async () => {
      const sink = await writer(projection);
      await sink.apply({ events: [], position: 5n });
      expect(await books.checkpoint(projection)).toBe(5n);
      const published = { ...facts.find(({ type }) => type === 'PriceListPublished'), position: 9n } as Fact;
      await sink.apply({ events: [published], position: 9n });
      expect(await books.checkpoint(projection)).toBe(9n);
      expect(await books.table(projection)).toEqual([]);
    });

    test('begins before the first fact', async () => {
      expect(await sinkOf(projection, books.pool).checkpoint()).toBe(START);
    });
  },
);
