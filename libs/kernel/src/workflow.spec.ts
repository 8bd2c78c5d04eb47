import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import { type Lease, LeaseLostError, StoreUnavailableError } from '#kernel';
import { createDeciderTest, createWorkflowTest } from '../../testing/src/given-when-then.ts';
import { ParcelWorld, ProcessKilledError } from '../../testing/src/scenarios/parcel-world.ts';
import { type ParcelEvent, parcels } from '../../testing/src/scenarios/parcels.ts';
import { MemoryWorkflowSchedule } from '../../testing/src/simulation/memory-workflow-schedule.ts';

const at = '2026-11-20T12:00:00.000Z';
const ordered: ParcelEvent = { type: 'ParcelOrdered', data: { at } };
const inStock: ParcelEvent = { type: 'StockFound', data: { at } };
const begunBy = (token: number): ParcelEvent => ({ type: 'ShippingBegun', data: { key: 'ship', token, at } });

function open(): ParcelWorld {
  return new ParcelWorld(new MemoryEventStore(), new MemoryWorkflowSchedule());
}

const announced =
  (world: ParcelWorld, ...ids: readonly string[]) =>
  () =>
    ids.every((id) => world.announced.has(id));
const DONE = ['ParcelOrdered', 'StockFound', 'ShippingBegun', 'ParcelShipped', 'ParcelAnnounced'];

/** Returns a function that checks whether a parcel was announced, which is the last event of its stream. */
const noted = (world: ParcelWorld, id: string) => async () =>
  (await world.listEventTypes(id)).includes('ParcelAnnounced');

describe('the plan of a workflow', () => {
  const given = createWorkflowTest(parcels);

  test('follows from the events and the time', () => {
    given().when(at).then([]);
    given(ordered)
      .when('2026-11-20T12:00:30.000Z')
      .then([{ step: 'query', query: 'stock' }], '2026-11-20T12:00:32.000Z');
    given(ordered).when('2026-11-20T12:01:00.000Z').then([]);
    given(ordered, inStock)
      .when(at)
      .then([{ step: 'effect', key: 'ship', effect: 'ship' }]);
    given(ordered, inStock, begunBy(1)).when(at).then([]);
  });
});

describe('an effect', () => {
  const given = createDeciderTest(parcels.decider);
  const begin = (token: number) => ({ type: 'BeginShipping', data: { key: 'ship', token, at } }) as const;

  test('starts once', () => {
    given(ordered, inStock)
      .when(begin(4))
      .then({ type: 'ShippingBegun', data: begin(4).data });
    given(ordered, inStock, begunBy(4)).when(begin(5)).thenAlreadySo();
  });

  test('does not start in a process that has lost its lease', () => {
    given(ordered, inStock, begunBy(5)).when(begin(4)).thenRefused('lease_lost');
  });
});

describe('a workflow', () => {
  test('ships and announces a parcel once, and appends an event for each change', async () => {
    const world = open();
    await world.orderParcel('a');
    await world.runProcess(noted(world, 'a'));
    expect(await world.listEventTypes('a')).toEqual(DONE);
    expect([world.shipped, world.announcements, world.reportedErrors]).toEqual([['a'], 1, []]);
  });

  test('polls at its own interval without appending events', async () => {
    const world = open();
    world.stockAvailableAtMs = world.time + 50_000;
    await world.orderParcel('a');
    await world.runProcess(async () => world.queryTimes.length === 10);
    expect(await world.listEventTypes('a')).toEqual(['ParcelOrdered']);
    const waits = world.queryTimes.slice(2).map((time, i) => time - (world.queryTimes[i + 1] as number));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(2_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(2_500);
  });

  test('does not poll a stream early that completes while another one is rescheduled', async () => {
    const world = open();
    world.stockAvailableAtMs = world.time + 50_000;
    await world.orderParcel('a');
    await world.orderParcel('b');
    const rescheduling = Promise.withResolvers<void>();
    let queries = 0;
    await world.runProcess(
      async () => world.queryTimes.length >= 3,
      async (what, work) => {
        const isSecondQuery = what === 'ask' && ++queries === 2;
        const result = await work();
        if (isSecondQuery) await rescheduling.promise;
        if (what === 'reschedule') {
          rescheduling.resolve();
          await setImmediate(); // the second query ends, and its stream completes
        }
        return result;
      },
    );
    const [first = 0, second = 0, third = 0] = world.queryTimes;
    expect(second).toBe(first);
    expect(third - first).toBeGreaterThanOrEqual(2_000);
  });

  test('continues with its timers after a restart of the process', async () => {
    const world = open();
    world.stockAvailableAtMs = world.time + 10_000;
    await world.orderParcel('a');
    await world.runProcess(() => world.queryTimes.length === 2);
    await world.runProcess(noted(world, 'a'));
    expect(world.shipped).toEqual(['a']);
    expect(world.time).toBeLessThan(world.stockAvailableAtMs + 5_000);
  });

  test('rebuilds lost timers from the events', async () => {
    const world = new ParcelWorld(new MemoryEventStore(), new MemoryWorkflowSchedule());
    world.stockAvailableAtMs = world.time + 10_000;
    await world.orderParcel('a');
    await world.runProcess(() => world.queryTimes.length === 2);
    const rebuilt = new ParcelWorld(world.store, new MemoryWorkflowSchedule());
    await rebuilt.runProcess(noted(rebuilt, 'a'));
    expect(rebuilt.shipped).toEqual(['a']);
  });

  test('ships each parcel once if some queries fail, and reports an error', async () => {
    const world = open();
    await world.orderParcel('bad');
    await world.orderParcel('good');
    let failures = 3;
    let asked = 0;
    await world.runProcess(announced(world, 'bad', 'good'), async (what, work) => {
      if (what === 'ask' && asked++ % 2 === 0 && failures-- > 0) throw new Error('not now');
      return work();
    });
    expect([...world.shipped].toSorted()).toEqual(['bad', 'good']);
    expect(world.reportedErrors.length).toBeGreaterThan(0);
  });

  test('does not repeat an effect whose outcome is unknown', async () => {
    const world = open();
    await world.orderParcel('a');
    await world.runProcess(noted(world, 'a'), async (what, work) => {
      const answer = await work();
      if (what === 'ship') throw new Error('the response was lost');
      return answer;
    });
    expect(world.shipped).toEqual(['a']);
    expect(await world.listEventTypes('a')).toEqual([...DONE.slice(0, 3), 'ShippingUnknown', ...DONE.slice(3)]);
  });

  describe('whose store is unavailable after an effect', () => {
    /** Makes the store unavailable after the effect, for `awayMs`. `over` is called then, and may end the lease. */
    async function shippedBefore(awayMs: number, over: () => void, lease?: (stop: AbortController) => Lease) {
      const world = open();
      await world.orderParcel('a');
      let backAt: number | undefined;
      const ended = async () => {
        const last = (await world.listEventTypes('a')).at(-1) ?? '';
        return ['ParcelShipped', 'ShippingUnknown', 'ParcelAnnounced'].includes(last);
      };
      const away = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
        if (what === 'append' && backAt !== undefined && world.time < backAt) throw new StoreUnavailableError('away');
        const answer = await work();
        if (what !== 'ship') return answer;
        backAt = world.time + awayMs;
        over();
        return answer;
      };
      await world.runProcess(ended, away, lease).catch((error) => expect(error).toBeInstanceOf(LeaseLostError));
      const types = (await world.listEventTypes('a')).slice(2, 4);
      return { shipped: world.shipped, types, reportedErrors: world.reportedErrors };
    }

    test('records the outcome once the store is back if the lease is still held', async () => {
      const { shipped, types, reportedErrors } = await shippedBefore(60_000, () => {});
      expect([shipped, types]).toEqual([['a'], ['ShippingBegun', 'ParcelShipped']]);
      expect(new Set(reportedErrors)).toEqual(new Set(['parcels could not record an outcome; retrying']));
    });

    test.each([
      [10_000, ['ShippingBegun', 'ParcelShipped']],
      [60_000, ['ShippingBegun', 'ShippingUnknown']],
    ])('retries the recording for some time after the lease has ended (outage: %s ms)', async (awayMs, recorded) => {
      let holds = true;
      const lease = (stop: AbortController): Lease => ({ token: 1, signal: stop.signal, isHeld: () => holds });
      const over = () => {
        holds = false;
      };
      const { shipped, types } = await shippedBefore(awayMs, over, lease);
      expect([shipped, types]).toEqual([['a'], recorded]);
    });
  });

  test('performs the effects of more streams than it has slots, each once', async () => {
    const world = open();
    const ids = Array.from({ length: 300 }, (_, i) => `p${i}`);
    for (const id of ids) await world.orderParcel(id);
    await world.runProcess(announced(world, ...ids));
    expect(new Set(world.shipped).size).toBe(300);
    expect(world.shipped).toHaveLength(300);
  });
});

test('detached effects do not occupy the slots of other streams', async () => {
  const world = open();
  world.workflow = {
    ...parcels,
    effects: { ...(parcels.effects as NonNullable<typeof parcels.effects>), maxDetached: 400 },
  };
  const slow = Array.from({ length: 400 }, (_, i) => `slow${i}`);
  for (const id of slow) await world.orderParcel(id);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let begun = 0;
  const ended = async () => {
    if (begun === 400) await world.orderParcel('quick'); // idempotent
    if (begun < 400 || !world.announced.has('quick')) return false;
    expect(world.announced.size).toBe(1);
    release();
    return true;
  };
  await world.runProcess(ended, async (what, work) => {
    if (what === 'ship' && ++begun <= 400) await released;
    return work();
  });
  await world.runProcess(announced(world, ...slow));
  expect(new Set(world.shipped).size).toBe(401);
  expect(world.shipped).toHaveLength(401);
});

describe('an event of another category', () => {
  /** A delivery concerns the parcel with its id. */
  const watching = (world: ParcelWorld): ParcelWorld => {
    world.workflow = { ...parcels, findAffectedId: ({ stream }) => /^delivery-(.*)$/.exec(stream)?.[1] };
    return world;
  };
  let deliveries = 0;
  const deliver = (world: ParcelWorld, id: string) =>
    world.store.append(`delivery-${id}`, -1, [
      { id: `${deliveries++}`, type: 'StockDelivered', data: {}, metadata: {} },
    ]);

  test.each([false, true])('makes a stream due if it has a timer (stock before the event: %s)', async (later) => {
    const world = watching(open());
    world.stockAvailableAtMs = Number.POSITIVE_INFINITY;
    world.workflow = {
      ...world.workflow,
      // The stream is polled once a minute.
      plan: (parcel, now) => ({
        ...parcels.plan(parcel, now),
        dueAt: new Date(Date.parse(now) + 60_000).toISOString(),
      }),
    };
    await world.orderParcel('a');
    const looked = () => world.queryTimes.length > 0 && world.time > (world.queryTimes.at(-1) as number) + 1_000;
    await world.runProcess(looked);
    const [before, wanted] = [world.time, world.queryTimes.length];
    if (!later) await deliver(world, 'a');
    world.stockAvailableAtMs = 0;
    if (later) await deliver(world, 'a');
    await world.runProcess(() => world.queryTimes.length > wanted);
    expect(world.time - before).toBeLessThan(2_000);
  });

  test('does not wake streams without a timer or unknown streams', async () => {
    const world = watching(open());
    await world.orderParcel('a');
    const after: string[] = [];
    let delivered = false;
    const rested = async () => {
      if (delivered) return after.includes('save');
      if (!(await noted(world, 'a')()) || (await world.due.listWaiting('parcels')).length > 0) return false;
      await deliver(world, 'a');
      await deliver(world, 'b');
      delivered = true;
      return false;
    };
    await world.runProcess(rested, (what, work) => {
      if (delivered) after.push(what);
      return work();
    });
    expect(after).not.toContain('wake');
  });
});

describe('a process that dies', () => {
  /** Kills the process at its nth action: before the action, or after it, so that its result is lost. */
  const dying = (n: number, after: boolean) => {
    let actions = 0;
    return async <T>(_: string, work: () => Promise<T>): Promise<T> => {
      if (++actions < n) return work();
      if (after) await work();
      throw new ProcessKilledError();
    };
  };

  test.each([false, true])(
    'ships once, or never if the outcome is unknown, and repeats no event but ShippingUnknown (dies after it acts: %s)',
    async (after) => {
      for (let n = 1; n <= 30; n++) {
        const world = open();
        await world.orderParcel('a');
        await world.runProcess(noted(world, 'a'), dying(n, after));
        const begunAndLost = async () =>
          (await world.listEventTypes('a')).at(-1) === 'ShippingUnknown' && world.shipped.length === 0;
        await world.runProcess(async () => (await noted(world, 'a')()) || (await begunAndLost()));
        const types = await world.listEventTypes('a');
        expect({ n, shipped: world.shipped.length }).toEqual({ n, shipped: (await begunAndLost()) ? 0 : 1 });
        expect(types.filter((type) => type !== 'ShippingUnknown')).toEqual(
          DONE.slice(0, (await begunAndLost()) ? 3 : 5),
        );
      }
    },
  );

  test('repeats no effect if it dies many times', async () => {
    const world = open();
    await world.orderParcel('a');
    for (let n = 1; n <= 12; n++) await world.runProcess(noted(world, 'a'), dying(n, n % 2 === 0));
    await world.runProcess(
      async () => (await noted(world, 'a')()) || (await world.listEventTypes('a')).at(-1) === 'ShippingUnknown',
    );
    expect(world.shipped.length).toBeLessThanOrEqual(1);
  });
});

describe('a process that has lost its lease', () => {
  test('does not perform an effect that it was about to start, and stops', async () => {
    const world = open();
    await world.orderParcel('a');
    let over = false;
    const lease = (stop: AbortController): Lease => ({ token: 1, signal: stop.signal, isHeld: () => !over });
    const zombie = world.runProcess(
      () => false,
      async (what, work) => {
        const answer = await work();
        // The process is suspended for longer than its lease, after the append that records the start of shipping.
        if (what === 'append' && (await world.listEventTypes('a')).at(-1) === 'ShippingBegun') over = true;
        return answer;
      },
      lease,
    );
    await expect(zombie).rejects.toBeInstanceOf(LeaseLostError);
    expect(world.shipped).toEqual([]);
  });

  test('is rejected by a stream that has events of a later lease', async () => {
    const world = open();
    world.stockAvailableAtMs = world.time + 4_000;
    await world.orderParcel('a');
    let other: Promise<void> | undefined;
    const late = (stop: AbortController): Lease => ({ token: 9, signal: stop.signal, isHeld: () => true });
    const early = (stop: AbortController): Lease => ({ token: 8, signal: stop.signal, isHeld: () => true });
    // This process sleeps between the decision to ship and its append. Another process starts in that time.
    const zombie = world.runProcess(
      () => false,
      async (what, work) => {
        if (what === 'append' && (await world.listEventTypes('a')).at(-1) === 'StockFound') {
          other ??= world.runProcess(() => world.shipped.length === 1, undefined, late);
          await other;
        }
        return work();
      },
      early,
    );
    await expect(zombie).rejects.toBeInstanceOf(LeaseLostError);
    expect(world.shipped).toEqual(['a']);
  });

  test('has started an effect that its successor does not start again', async () => {
    const world = open();
    await world.orderParcel('a');
    let other: Promise<void> | undefined;
    const early = (stop: AbortController): Lease => ({ token: 8, signal: stop.signal, isHeld: () => true });
    const late = (stop: AbortController): Lease => ({ token: 9, signal: stop.signal, isHeld: () => true });
    await world.runProcess(
      noted(world, 'a'),
      async (what, work) => {
        if (what === 'append' && (await world.listEventTypes('a')).at(-1) === 'StockFound') {
          other ??= world.runProcess(() => world.shipped.length === 1, undefined, early);
          await other;
        }
        return work();
      },
      late,
    );
    expect(world.shipped).toEqual(['a']);
  });

  test('does not record an outcome for an effect that its successor has started', async () => {
    const world = open();
    await world.orderParcel('a');
    const started = [inStock, begunBy(9)].map((event, i) => ({ id: `${i}`, ...event, metadata: {} }));
    await world.store.append('parcel-a', 0, started);
    const early = (stop: AbortController): Lease => ({ token: 8, signal: stop.signal, isHeld: () => true });
    await expect(world.runProcess(() => false, undefined, early)).rejects.toBeInstanceOf(LeaseLostError);
    expect(await world.listEventTypes('a')).toEqual(['ParcelOrdered', 'StockFound', 'ShippingBegun']);
  });
});
