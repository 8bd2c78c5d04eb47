import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Challenges, createStreams } from '#application';
import type { DomainEvent } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { formatUsd, NO_SNAPSHOTS, START_POSITION } from '#kernel';
import { type ForfeitDependencies, forfeitUnclaimedPayments } from '#sagas';
import { createTestRuntime } from '#testing';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { replaceDelays } from '../../testing/src/replace-delays.ts';
import { createIssuedChallenge } from '../../testing/src/scenarios/issued-challenge.ts';
import { TEST_CAUSE } from '../../testing/src/test-cause.ts';

const time = new FakeClock('2026-11-22T12:00:00.000Z');
afterAll(replaceDelays(time.delay));

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let store: MemoryEventStore;
let stop: AbortController;
let running: Promise<void>[];
let alarms: string[];
let reports: string[];

beforeEach(() => {
  [store, stop, running, alarms, reports] = [new MemoryEventStore(), new AbortController(), [], [], []];
});
afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

/** Creates the write path of a separate process. */
function writePath(): Challenges {
  const runtime = createTestRuntime({ sleep: async () => {}, reportError: (problem) => void alarms.push(problem) });
  return createStreams(store, NO_SNAPSHOTS, runtime).challenges;
}

/** Issues a challenge of 0.0115 USD that can be used for a day. */
async function issue(id: string): Promise<void> {
  const expiry = { expiresAt: time.fromNow(HOUR), usableUntil: time.fromNow(DAY) };
  const data = createIssuedChallenge({ ...expiry, at: time.now() });
  await writePath().run(id, { type: 'IssueChallenge', data }, TEST_CAUSE);
}

async function pay(id: string): Promise<void> {
  const data = { units: 14_000n, at: time.now() };
  await writePath().run(id, { type: 'RecordChallengePayment', data }, TEST_CAUSE);
}

async function paid(...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await issue(id);
    await pay(id);
  }
}

async function facts(): Promise<readonly (DomainEvent & { readonly stream: string })[]> {
  const all: (DomainEvent & { readonly stream: string })[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as unknown as typeof all));
  return all;
}

const income = async () =>
  (await facts()).flatMap(({ type, stream }) =>
    type === 'ChallengeForfeited' ? [stream.slice('challenge-'.length)] : [],
  );

/** Behaves like a lagging read model: it also returns challenges that were already forfeited. */
async function everPaid(before: string): Promise<readonly string[]> {
  const payments = (await facts()).flatMap((fact) => (fact.type === 'ChallengePaid' ? [fact] : []));
  return payments.filter(({ data }) => data.at < before).map(({ stream }) => stream.slice('challenge-'.length));
}

function sweep(more: Partial<ForfeitDependencies> = {}): void {
  const ports: ForfeitDependencies = {
    challenges: writePath(),
    clock: time,
    unclaimedAfterDays: 30,
    findUnclaimed: everPaid,
    onForfeit: ({ challenges, amount }) => void reports.push(`${challenges}: ${formatUsd(amount)} USD`),
    runtime: createTestRuntime({ ...time.timers, reportError: (problem) => void alarms.push(problem) }),
    ...more,
  };
  running.push(forfeitUnclaimedPayments(ports, stop.signal));
}

describe('an unclaimed payment', () => {
  test('becomes income after `unclaimedAfterDays`, not earlier, and is reported', async () => {
    await paid('a', 'b');
    sweep();
    await time.advance(31 * DAY - 1);
    expect(await income()).toEqual([]);
    await time.advance(2 * HOUR);
    expect([await income(), reports, alarms]).toEqual([['a', 'b'], ['2: 0.023 USD'], []]);
  });

  test('becomes income once, although several processes sweep with a lagging read model', async () => {
    await paid('a', 'b', 'c');
    await time.advance(32 * DAY);
    for (let i = 0; i < 3; i++) sweep();
    await time.advance(DAY);
    expect((await income()).toSorted()).toEqual(['a', 'b', 'c']);
  });

  test('is not forfeited early, even if the read model returns it', async () => {
    await paid('a');
    sweep({ findUnclaimed: async () => ['a'] });
    await time.advance(31 * DAY - HOUR);
    expect([await income(), reports]).toEqual([[], []]);
  });

  test('does not block the others if it cannot be forfeited, and is retried', async () => {
    await paid('bad', 'good');
    await time.advance(32 * DAY);
    const path = writePath();
    let broken = true;
    const run: Challenges['run'] = (id, ...more) =>
      broken && id === 'bad' ? Promise.reject(new Error('damaged')) : path.run(id, ...more);
    sweep({ challenges: { run } });
    await time.advance(1);
    expect([await income(), reports]).toEqual([['good'], ['1: 0.0115 USD']]);
    expect(alarms).toEqual(['the unclaimed amount of challenge bad could not be forfeited; retrying']);
    broken = false;
    await time.advance(2 * 60_000);
    expect(await income()).toEqual(['good', 'bad']);
  });

  test('is found when it is due, and takes no place among the oldest before', async () => {
    await issue('paid-late');
    await time.advance(10 * HOUR);
    await issue('paid');
    await pay('paid');
    await time.advance(10 * HOUR);
    await pay('paid-late');

    const path = writePath();
    const decided: string[] = [];
    const run: Challenges['run'] = (id, ...more) => {
      decided.push(id);
      return path.run(id, ...more);
    };
    const findOldest = async (before: string) => {
      const forfeited = await income();
      return (await everPaid(before)).filter((id) => !forfeited.includes(id)).slice(0, 1);
    };
    sweep({ challenges: { run }, findUnclaimed: findOldest });
    await time.advance(33 * DAY);
    expect([decided, await income()]).toEqual([
      ['paid', 'paid-late'],
      ['paid', 'paid-late'],
    ]);
  });

  test('is forfeited by the next sweep after a failed lookup', async () => {
    await paid('a');
    await time.advance(32 * DAY);
    let failures = 1;
    sweep({ findUnclaimed: (before) => (failures-- > 0 ? Promise.reject(new Error('away')) : everPaid(before)) });
    await time.advance(2 * 60_000);
    expect([await income(), alarms]).toEqual([['a'], ['unclaimed payments could not be found; retrying']]);
  });
});
