import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BackendPayment,
  createStreams,
  type PaymentBackend,
  PaymentBackendRegistry,
  PaymentRegistry,
} from '#application';
import type { DomainEvent } from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  type CheckpointStore,
  type EventStore,
  NO_SNAPSHOTS,
  parseUsd,
  type Runtime,
  START_POSITION,
  type StoredEvent,
} from '#kernel';
import { runChallengeWorkflow } from '#sagas';
import { createTestRuntime } from '#testing';
import { FakeClock, followClock } from '../../testing/src/fake-clock.ts';
import { createIssuedChallenge } from '../../testing/src/scenarios/issued-challenge.ts';
import { MemoryWorkflowSchedule } from '../../testing/src/simulation/memory-workflow-schedule.ts';
import { TEST_CAUSE } from '../../testing/src/test-cause.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const STRIDE = 30 * MINUTE;
const WEEK = 7 * 24 * 60 * MINUTE;
const ID = '10000000-0000-4000-8000-000000000001';
const ASKED = 14_000n;

class Died extends Error {}

/** A fake node that has preset payments and counts its polls. */
class Node {
  readonly paid = new Map<string, bigint>();
  fees: BackendPayment['fees'] = [];
  looks = 0;

  backend(act: Act): PaymentBackend {
    const look = (references: readonly string[]) => act(async () => this.look(references));
    return { name: 'lnd', maxBatchSize: 1, fetchPayments: look } as unknown as PaymentBackend;
  }

  private look(references: readonly string[]): readonly BackendPayment[] {
    this.looks++;
    return references.flatMap((reference) => {
      const units = this.paid.get(reference);
      const { fees = [] } = this;
      const payment = { reference, id: reference, confirmations: 'final' as const, receivedAt: time.now(), fees };
      return units === undefined ? [] : [{ ...payment, units }];
    });
  }
}

type Act = <T>(work: () => Promise<T>) => Promise<T>;
const alive: Act = (work) => work();

let time: FakeClock;
let store: EventStore;
let due: MemoryWorkflowSchedule;
let positions: Map<string, bigint>;
let node: Node;
let alarms: string[];
let stops: AbortController[];
let parts: Promise<void>[];

const runtime: Runtime = createTestRuntime({
  ...followClock(() => time),
  chance: () => 0,
  reportError: (problem) => void alarms.push(problem),
});

function start(): void {
  time = new FakeClock('2026-11-22T12:00:00.000Z');
  [store, due, positions, node] = [new MemoryEventStore(), new MemoryWorkflowSchedule(), new Map(), new Node()];
  [alarms, stops, parts] = [[], [], []];
}

beforeEach(start);
afterEach(stopAll);

async function stopAll(): Promise<void> {
  for (const stop of stops) stop.abort();
  await Promise.allSettled(parts);
}

/** Runs the workflow in a process whose actions go through `act`, until `act` throws `Died`. */
function watch(act: Act = alive): void {
  const stop = new AbortController();
  stops.push(stop);
  let dead = false;
  const doing: Act = async (work) => {
    if (dead) throw new Died();
    return act(work).catch((error) => {
      if (error instanceof Died) {
        dead = true;
        stop.abort();
      }
      throw error;
    });
  };
  const appending: EventStore = Object.create(store, {
    append: { value: (...args: Parameters<EventStore['append']>) => doing(() => store.append(...args)) },
  });
  const checkpoints: CheckpointStore = {
    load: async (reader) => positions.get(reader) ?? START_POSITION,
    save: (reader, position) => doing(async () => void positions.set(reader, position)),
  };
  const streams = createStreams(appending, NO_SNAPSHOTS, runtime);
  const running = runChallengeWorkflow(
    {
      eventReader: store,
      challenges: streams.challenges,
      registry: new PaymentRegistry(streams.paymentClaims, time),
      pollsPerSecond: 100,
      backends: new PaymentBackendRegistry([node.backend(doing)]),
      schedule: {
        findDue: (...args) => due.findDue(...args),
        listWaiting: (name) => due.listWaiting(name),
        wake: (...args) => doing(() => due.wake(...args)),
        reschedule: (...args) => doing(() => due.reschedule(...args)),
      },
      checkpoints,
      clock: time,
      runtime,
    },
    { token: stops.length, signal: stop.signal, isHeld: () => !stop.signal.aborted },
  );
  parts.push(...running.map((part) => part.catch(() => {})));
}

/** Advances in large steps after the first minutes, because later polls are hours apart. */
async function pass(milliseconds: number): Promise<void> {
  await time.advance(6 * MINUTE);
  for (let left = milliseconds - 6 * MINUTE; left > 0; left -= STRIDE) {
    time.jumpForward(Math.min(STRIDE, left));
    await time.advance(SECOND);
  }
}

const challenges = () => createStreams(store, NO_SNAPSHOTS, runtime).challenges;

async function issue(id = ID): Promise<void> {
  const expires = { expiresAt: time.fromNow(5 * MINUTE), usableUntil: time.fromNow(24 * 60 * MINUTE) };
  const data = createIssuedChallenge({ reference: id, ...expires, at: time.now() });
  await challenges().run(id, { type: 'IssueChallenge', data }, TEST_CAUSE);
}

/** Presents the proof, which holds money for the request. */
async function use(): Promise<void> {
  const { query, request } = createIssuedChallenge();
  const price = parseUsd('0.0115');
  const terms = { holdId: 'h', request, maxAmount: price, query, expiresAt: time.fromNow(MINUTE) };
  await challenges().run(ID, { type: 'ClaimChallenge', data: { ...terms, at: time.now() } }, TEST_CAUSE);
}

/** Returns the events of the challenges. */
async function facts(): Promise<readonly StoredEvent<DomainEvent>[]> {
  const all: StoredEvent<DomainEvent>[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as typeof all));
  return all.filter(({ stream }) => stream.startsWith('challenge-'));
}

const types = async () => (await facts()).map(({ type }) => type);

describe('a challenge', () => {
  test('is polled seven times without an append if nobody pays it', async () => {
    await issue();
    watch();
    await pass(8 * 24 * 60 * MINUTE);
    expect([await types(), node.looks, alarms]).toEqual([['ChallengeIssued'], 7, []]);
    expect([...due.rows.keys()]).toEqual([]);
  });

  test('is recorded as paid once, even without a proof, and then no longer polled', async () => {
    await issue();
    watch();
    await pass(2 * 60 * MINUTE);
    node.paid.set(ID, ASKED);
    await pass(WEEK);
    expect([await types(), node.looks]).toEqual([['ChallengeIssued', 'ChallengePaid'], 4]);
    expect((await facts())[1]).toMatchObject({ data: { by: 'backend', units: '14000' } });
  });

  test('is not paid by a payment that belongs to a top-up', async () => {
    await issue();
    const { paymentClaims } = createStreams(store, NO_SNAPSHOTS, runtime);
    await new PaymentRegistry(paymentClaims, time).claim({ backend: 'lnd', id: ID }, 'topup-a', TEST_CAUSE);
    node.paid.set(ID, ASKED);
    watch();
    await pass(WEEK);
    expect([await types(), alarms]).toEqual([['ChallengeIssued'], []]);
  });

  test('has its overpaid amount recorded once, with and without a presented proof', async () => {
    for (const shown of [true, false]) {
      start();
      await issue();
      watch();
      if (shown) await use();
      node.paid.set(ID, ASKED + 1_000n);
      await pass(2 * 60 * MINUTE);
      const more = (await facts()).filter(({ type }) => type === 'ChallengeOverpaid');
      expect(more).toMatchObject([{ data: { units: '1000', amount: parseUsd('0.00085').toString() } }]);
      await stopAll();
    }
  });

  test('has the fee of its payment backend recorded once', async () => {
    await issue();
    watch();
    await use();
    node.paid.set(ID, ASKED);
    node.fees = [{ id: 'liquidity', units: 7_000n, why: 'a channel was opened' }];
    await pass(2 * 60 * MINUTE);
    const kept = (await facts()).filter(({ type }) => type === 'PaymentFeeCharged');
    const data = { payment: { backend: 'lnd', id: ID }, units: '7000', amount: parseUsd('0.00595').toString() };
    expect(kept).toMatchObject([{ data }]);
  });

  test('is reported if underpaid, without an event', async () => {
    await issue();
    watch();
    node.paid.set(ID, ASKED - 1n);
    await time.advance(6 * MINUTE);
    expect(await types()).toEqual(['ChallengeIssued']);
    expect(alarms).toContain(`challenges ${ID} was rejected; retrying`);
  });

  test('is polled three times without an append after a proof that the backend confirms', async () => {
    await issue();
    watch();
    node.paid.set(ID, ASKED);
    await use();
    await pass(WEEK);
    expect([await types(), node.looks, alarms]).toEqual([['ChallengeIssued', 'ChallengePaid', 'FundsHeld'], 3, []]);
  });

  test('is reported if its proof was presented but the backend has no payment', async () => {
    await issue();
    watch();
    await use();
    await time.advance(MINUTE);
    expect(alarms).toEqual([`challenge ${ID} has a valid proof, but its payment backend reports no payment`]);
  });

  test('is ignored if its payment backend is not configured', async () => {
    await issue();
    node = Object.assign(new Node(), { backend: () => ({ name: 'cln', maxBatchSize: 1 }) });
    watch();
    await pass(WEEK);
    expect([await types(), alarms]).toEqual([['ChallengeIssued'], []]);
  });

  test('has its payment recorded once by two processes that both assume that they hold the lease', async () => {
    const ids = Array.from({ length: 10 }, (_, i) => `10000000-0000-4000-8000-00000000000${i}`);
    for (const id of ids) {
      await issue(id);
      node.paid.set(id, ASKED + 1n);
    }
    for (let i = 0; i < 2; i++) watch();
    await time.advance(10 * MINUTE);
    const found = await types();
    for (const type of ['ChallengePaid', 'ChallengeOverpaid'])
      expect(found.filter((each) => each === type)).toHaveLength(ids.length);
    expect(alarms).toEqual([]);
  });
});

test.each(['before', 'after'])('a payment is recorded once if a process dies %s any action', async (where) => {
  for (let n = 1, died = true; died; n++) {
    start();
    await issue();
    node.paid.set(ID, ASKED + 1_000n);
    let actions = 0;
    died = false;
    watch(async (work) => {
      if (++actions !== n) return work();
      died = true;
      if (where === 'after') await work();
      throw new Died();
    });
    await time.advance(6 * MINUTE);
    watch();
    await time.advance(10 * MINUTE);
    expect({ n, types: await types() }).toEqual({
      n,
      types: ['ChallengeIssued', 'ChallengePaid', 'ChallengeOverpaid'],
    });
    await stopAll();
    expect(died || n > 4).toBe(true);
  }
});
