import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BackendPayment,
  createStreams,
  ExchangeRates,
  type PaymentBackend,
  PaymentBackendRegistry,
  PaymentMethods,
  PaymentRegistry,
  type Rate,
  TopupPayments,
  UpstreamError,
} from '#application';
import { readPayments } from '#catalogue';
import type { DomainEvent, InvoiceIssued } from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  type CheckpointStore,
  createRootCause,
  NO_SNAPSHOTS,
  parseUsd,
  type Runtime,
  START_POSITION,
  type StoredEvent,
  StoreUnavailableError,
} from '#kernel';
import { runTopupWorkflow } from '#sagas';
import { createTestRuntime } from '#testing';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { createFullPayment, createIssuedInvoice } from '../../testing/src/scenarios/top-ups.ts';
import { MemoryWorkflowSchedule } from '../../testing/src/simulation/memory-workflow-schedule.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

type Report = { readonly hint: string } | Error | 'end';

/** A fake node that settles payments, sends hints and interrupts subscriptions as a test directs. */
class Node implements PaymentBackend {
  readonly name = 'lnd';
  readonly maxBatchSize: number = 1;
  readonly settled = new Map<string, BackendPayment>();
  readonly looks: (readonly string[])[] = [];
  readonly broken = new Set<string>();
  subscriptions = 0;
  forbidden = false;
  private reports: ((next: Report) => void) | undefined;

  get askedAfter(): readonly string[] {
    return this.looks.flat();
  }

  createPayment(): never {
    throw new Error('no payment is requested here');
  }

  async fetchPayments(references: readonly string[]) {
    this.looks.push(references);
    if (references.some((each) => this.broken.has(each))) throw new Error('the node has a problem with this one');
    return references.flatMap((each) => this.settled.get(each) ?? []);
  }

  async *subscribe(signal: AbortSignal) {
    this.subscriptions++;
    if (this.forbidden) throw new Error('forbidden');
    const stopped = new Promise<'end'>((resolve) => signal.addEventListener('abort', () => resolve('end')));
    for (;;) {
      const reported = new Promise<Report>((resolve) => {
        this.reports = resolve;
      });
      const next = await Promise.race([reported, stopped]);
      if (next === 'end') return;
      if (next instanceof Error) throw next;
      yield next.hint;
    }
  }

  async close(): Promise<void> {}

  /** @returns the hint that the node would send */
  pay(reference: string, receivedAt = time.now(), units = 1_000_000n): Report {
    this.settled.set(reference, { reference, id: reference, units, confirmations: 'final', receivedAt });
    return { hint: reference };
  }

  async say(next: Report): Promise<void> {
    await time.advance(0);
    this.reports?.(next);
    await time.advance(0);
  }
}

/** Has no exchange rate until `rate` is set. */
class Market extends ExchangeRates {
  rate: string | undefined;

  async fetchUsdRate(): Promise<Rate> {
    if (this.rate === undefined) throw new UpstreamError('upstream_unavailable', 'No exchange rate is available');
    return { value: this.rate, source: 'market', at: '2026-11-20T12:30:00.000Z' };
  }
}

let time: FakeClock;
let store: MemoryEventStore;
let due: MemoryWorkflowSchedule;
let positions: Map<string, bigint>;
let node: Node;
let market: Market;
let alarms: string[];
/** Whether the read model of top-ups is up to date. */
let known: boolean;
/** The lookups of top-ups by reference, with their timeouts. */
let asked: (readonly [references: readonly string[], withinMs: number])[];
let processes: Process[];
let books: Process;
let runtime: Runtime;

const checkpoints: CheckpointStore = {
  load: async (reader) => positions.get(reader) ?? START_POSITION,
  save: async (reader, position) => void positions.set(reader, position),
};

/** A process with its own write paths, which can run the workflow. */
class Process {
  readonly streams = createStreams(store, NO_SNAPSHOTS, runtime);
  readonly registry = new PaymentRegistry(this.streams.paymentClaims, time);
  readonly payments = new TopupPayments(
    market,
    new PaymentMethods(readPayments(), new PaymentBackendRegistry([node]), 1),
    this.registry,
    time,
  );
  private readonly over = new AbortController();
  private parts: readonly Promise<void>[] = [];

  constructor() {
    processes.push(this);
  }

  /** Runs the workflow until the end of the test or until `stop`. */
  watch(token = processes.length): this {
    const lease = { token, signal: this.over.signal, isHeld: () => !this.over.signal.aborted };
    const { accounts, topups, challenges } = this.streams;
    const byReference = async (backend: string, references: readonly string[], withinMs: number) => {
      asked.push([references, withinMs]);
      const found = await Promise.all(references.map((each) => issued(backend, each)));
      const ids = references.flatMap((each, i) => (found[i] && known ? [[each, found[i].topupId] as const] : []));
      return { ids: new Map(ids), isComplete: known };
    };
    this.parts = runTopupWorkflow(
      {
        eventReader: store,
        accounts,
        topups,
        challenges,
        registry: this.registry,
        payments: this.payments,
        schedule: due,
        checkpoints,
        clock: time,
        runtime,
        backends: new PaymentBackendRegistry([node]),
        findTopups: byReference,
        pollsPerSecond: 100,
      },
      lease,
    );
    return this;
  }

  async stop(): Promise<void> {
    this.over.abort();
    await Promise.allSettled(this.parts);
  }
}

beforeEach(() => {
  time = new FakeClock('2026-11-20T12:00:00.000Z');
  [store, due, positions, node, market] = [
    new MemoryEventStore(),
    new MemoryWorkflowSchedule(),
    new Map(),
    new Node(),
    new Market(),
  ];
  [alarms, processes, known, asked] = [[], [], true, []];
  runtime = createTestRuntime({ ...time.timers, chance: () => 0, reportError: (problem) => void alarms.push(problem) });
  books = new Process();
});

afterEach(() => Promise.all(processes.map((each) => each.stop())));

async function facts(stream?: string): Promise<readonly StoredEvent<DomainEvent>[]> {
  const all: StoredEvent<DomainEvent>[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as typeof all));
  return stream === undefined ? all : all.filter((fact) => fact.stream === stream);
}

async function issued(backend: string, reference: string) {
  const fact = (await facts()).find(({ data }) => 'reference' in data && data.reference === reference);
  return fact && (fact.data as InvoiceIssued['data']).backend === backend
    ? { topupId: fact.stream.slice('topup-'.length) }
    : undefined;
}

const typesOf = async (topupId: string) => (await facts(`topup-${topupId}`)).map(({ type }) => type);
const credits = async () => (await facts()).flatMap(({ type, data }) => (type === 'CreditAdded' ? [data] : []));
const PAID = ['InvoiceIssued', 'PaymentReceived', 'TopupCredited'];

async function openAccount(): Promise<string> {
  const id = randomUUID();
  await books.streams.accounts.run(id, { type: 'OpenAccount', data: { at: time.now() } }, createRootCause('test', id));
  return id;
}

/** Issues an invoice of 1 USD that expires in 15 minutes, at a rate of 100,000 USD per bitcoin. */
async function issue(reference: string, more: Partial<InvoiceIssued['data']> = {}): Promise<void> {
  const accountId = more.accountId ?? (await openAccount());
  const data = createIssuedInvoice({
    reference,
    expiresAt: time.fromNow(15 * MINUTE),
    at: time.now(),
    ...more,
    accountId,
  });
  await books.streams.topups.run(reference, { type: 'IssueInvoice', data }, createRootCause('account:a', reference));
}

/** Issues invoices that are already paid at the node, before the workflow polls them. */
async function paid(...references: readonly string[]): Promise<void> {
  for (const reference of references) {
    await issue(reference);
    node.pay(reference);
  }
}

describe('a payment', () => {
  test('is recorded, credited and marked as credited as soon as the node hints at it', async () => {
    await issue('aa');
    books.watch();
    await time.advance(SECOND);
    await node.say(node.pay('aa'));
    expect(await typesOf('aa')).toEqual(PAID);
    expect(await credits()).toMatchObject([{ creditId: 'lnd/aa', amount: parseUsd('1').toString() }]);
  });

  test('has the event that caused it and the id of its top-up in the metadata, like its credit', async () => {
    await paid('aa');
    books.watch();
    await time.advance(SECOND);
    const fact = async (type: DomainEvent['type']) => (await facts()).find((each) => each.type === type);
    const [issue, received, credit, mark] = [
      await fact('InvoiceIssued'),
      await fact('PaymentReceived'),
      await fact('CreditAdded'),
      await fact('TopupCredited'),
    ];
    const watch = { actor: 'workflow:topups', $correlationId: 'aa' };
    expect(received?.metadata).toEqual({ ...watch, $causationId: issue?.id });
    expect(credit?.metadata).toEqual({ ...watch, $causationId: received?.id });
    expect(mark?.metadata).toEqual({ ...watch, $causationId: received?.id });
  });

  test('is found within two seconds without a hint', async () => {
    await issue('aa');
    books.watch();
    await time.advance(MINUTE);
    node.pay('aa');
    await time.advance(2 * SECOND);
    expect(await typesOf('aa')).toEqual(PAID);
  });

  test('is credited at once after a hint, even if its routine poll waits for many others', async () => {
    for (let i = 0; i < 100; i++) await issue(`r${i}`);
    books.watch();
    await time.advance(SECOND / 10);
    await node.say(node.pay('r99'));
    await time.advance(SECOND / 4);
    expect(await typesOf('r99')).toEqual(PAID);
  });

  test('is not recorded for a hint that polling does not confirm', async () => {
    await issue('aa');
    books.watch();
    await node.say({ hint: 'aa' });
    expect([await typesOf('aa'), alarms]).toEqual([['InvoiceIssued'], []]);
  });

  test('is credited after an early hint, once the read model shows its top-up', async () => {
    await issue('aa', { expiresAt: '2020-01-01T00:00:00.000Z' }); // so old that it is polled only after a hint
    market.rate = '100000.00';
    books.watch();
    await time.advance(SECOND);
    known = false;
    await node.say(node.pay('aa'));
    await node.say(node.pay('other'));
    await time.advance(MINUTE);
    expect(await typesOf('aa')).toEqual(['InvoiceIssued']);
    known = true;
    await time.advance(3 * SECOND);
    expect([await typesOf('aa'), alarms]).toEqual([PAID, []]);
  });

  test('is not credited to a second top-up for which the node reports it, even if a version without claims recorded it', async () => {
    await issue('aa');
    const data = createFullPayment(createIssuedInvoice({ reference: 'aa' }));
    await books.streams.topups.run('aa', { type: 'RecordPayment', data }, createRootCause('test', 'aa'));
    await issue('bb');
    node.pay('bb');
    node.settled.set('bb', { ...(node.settled.get('bb') as BackendPayment), id: 'aa' });
    books.watch();
    await time.advance(SECOND);
    expect([await typesOf('aa'), await typesOf('bb')]).toEqual([PAID, ['InvoiceIssued']]);
    expect((await credits()).map(({ creditId }) => creditId)).toEqual(['lnd/aa']);
    expect(alarms).toEqual(['payment lnd/aa of topup-aa was also reported for topup-bb, which gets nothing for it']);
  });

  test('is looked up by its hint at once, then again with a wait for the read model', async () => {
    books.watch();
    known = false;
    await node.say({ hint: 'other' });
    await time.advance(2 * SECOND);
    expect(asked).toEqual([
      [['other'], 0],
      [['other'], 2_000],
    ]);
  });

  test('loses its hint if more than 5,000 hints are open; the oldest hints are removed first', async () => {
    known = false;
    const hints = Array.from({ length: 5_002 }, (_, i) => `h${i}`);
    node.subscribe = async function* (signal) {
      yield* hints;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    };
    books.watch();
    await time.advance(2 * SECOND);
    expect(asked.at(-1)).toEqual([hints.slice(2), 2_000]);
  });

  test('changes nothing if it was recorded before, or belongs to an unknown invoice', async () => {
    await issue('aa');
    books.watch();
    await node.say(node.pay('other'));
    await node.say(node.pay('aa'));
    await node.say(node.pay('aa'));
    expect([await typesOf('aa'), alarms]).toEqual([PAID, []]);
  });

  test('appends no event before it arrives', async () => {
    await issue('aa');
    books.watch();
    await time.advance(20 * MINUTE);
    expect(node.askedAfter.length).toBeGreaterThan(450);
    expect(await typesOf('aa')).toEqual(['InvoiceIssued']);
  });

  test('is reported as an error if its amount changes, without blocking other payments', async () => {
    await issue('aa', { destination: { kind: 'address', value: 'x' } });
    books.watch();
    await node.say(node.pay('aa'));
    node.pay('aa', time.now(), 2_000_000n);
    await issue('bb');
    node.pay('bb');
    await time.advance(61 * SECOND);
    expect([await typesOf('aa'), await typesOf('bb')]).toEqual([PAID, PAID]);
    expect(alarms).toContain('topups aa was rejected; retrying');
  });

  test.each<[string, Partial<BackendPayment>]>([
    ['of more units than exist of any coin', { units: 10n ** 20n }],
    ['of a negative amount', { units: -1n }],
    ['with an implausibly large fee', { fees: [{ id: 'f', units: 10n ** 200n, why: '' }] }],
    ['with an implausibly large refund', { reversals: [{ id: 'r', units: -(10n ** 200n), why: '' }] }],
    ['with a year of five digits, which sorts before its expiry', { receivedAt: '+033658-09-27T01:46:39.000Z' }],
    ['with a NUL in its id', { id: 'a\u0000' }],
    ['with an extremely long refund reason', { reversals: [{ id: 'r', units: -1n, why: 'x'.repeat(10_000) }] }],
    [
      'with thousands of fees',
      { fees: Array.from({ length: 2_000 }, (_, i) => ({ id: `f${i}`, units: 1n, why: '' })) },
    ],
  ])('%s is reported and not recorded; it is credited after the node returns valid data', async (_, lie) => {
    await issue('aa');
    node.pay('aa');
    const truth = node.settled.get('aa') as BackendPayment;
    node.settled.set('aa', { ...truth, ...lie });
    books.watch();
    await time.advance(5 * SECOND);
    expect(await typesOf('aa')).toEqual(['InvoiceIssued']);
    expect(alarms).toContain('topups aa failed; retrying');
    node.settled.set('aa', truth);
    await time.advance(MINUTE);
    expect(await typesOf('aa')).toEqual(PAID);
  });

  test('is ignored if its amount is 0, and polling continues', async () => {
    await issue('aa');
    books.watch();
    await node.say(node.pay('aa', time.now(), 0n));
    expect([await typesOf('aa'), alarms]).toEqual([['InvoiceIssued'], []]);
    await node.say(node.pay('aa'));
    expect(await typesOf('aa')).toEqual(PAID);
  });

  test('is valued at the rate of its invoice if it arrives in time', async () => {
    await issue('aa');
    node.pay('aa', time.fromNow(15 * MINUTE)); // exactly at the expiry
    books.watch();
    await time.advance(SECOND);
    expect((await facts('topup-aa'))[1]).toMatchObject({
      data: { amount: parseUsd('1').toString(), rate: { value: '100000.00' } },
    });
  });

  test('is valued at a current rate if it arrives late, as soon as a rate is available', async () => {
    await issue('aa');
    node.pay('aa', time.fromNow(15 * MINUTE + 1));
    books.watch();
    await time.advance(5 * SECOND);
    expect(await typesOf('aa')).toEqual(['InvoiceIssued']);
    expect(alarms).toContain('topups aa failed; retrying');
    market.rate = '50000.00';
    await time.advance(MINUTE);
    market.rate = '80000.00';
    await time.advance(MINUTE);
    expect(await credits()).toMatchObject([
      { amount: parseUsd('0.5').toString(), bonus: parseUsd('0.025').toString() },
    ]);
    const rate = { value: '50000.00', source: 'market', at: '2026-11-20T12:30:00.000Z' };
    expect((await facts('topup-aa'))[1]).toMatchObject({ data: { rate } });
  });
});

describe('a credit', () => {
  test('is added once, even if the checkpoint and the schedule are lost', async () => {
    await paid('aa', 'bb');
    books.watch();
    await time.advance(SECOND);
    const before = await facts();
    expect(await credits()).toHaveLength(2);
    await books.stop();
    [due, positions] = [new MemoryWorkflowSchedule(), new Map()];
    new Process().watch();
    await time.advance(MINUTE);
    expect([await facts(), alarms]).toEqual([before, []]);
  });

  test('is added once by two processes that both assume that they hold the lease', async () => {
    const topups = Array.from({ length: 20 }, (_, i) => `t${i}`);
    await paid(...topups);
    for (const each of [new Process(), new Process()]) each.watch();
    await time.advance(10 * SECOND);
    expect(await credits()).toHaveLength(topups.length);
    for (const topup of topups) expect(await typesOf(topup)).toEqual(PAID);
    expect(alarms).toEqual([]);
  });

  test('is added once if the process dies before the payment is marked as credited', async () => {
    await paid('aa');
    const { run } = books.streams.topups;
    books.streams.topups.run = (id, command, ...more) =>
      command.type === 'MarkCredited' ? Promise.reject(new Error('killed')) : run(id, command, ...more);
    books.watch();
    await time.advance(SECOND);
    await books.stop();
    expect([await typesOf('aa'), (await credits()).length]).toEqual([['InvoiceIssued', 'PaymentReceived'], 1]);
    new Process().watch();
    await time.advance(10 * SECOND);
    expect([await typesOf('aa'), (await credits()).length]).toEqual([PAID, 1]);
  });

  test('is retried if it fails, without delaying other credits', async () => {
    await issue('bad', { accountId: randomUUID() });
    node.pay('bad');
    await paid('good');
    const { run } = books.streams.accounts;
    let failures = 2;
    books.streams.accounts.run = (...command) =>
      failures-- > 0 ? Promise.reject(new StoreUnavailableError('away')) : run(...command);
    books.watch();
    await time.advance(20 * SECOND);
    expect(await credits()).toMatchObject([{ creditId: 'lnd/good' }]);
    expect(alarms).toContain('topups bad was rejected; retrying');
  });

  test('is reversed once, including the bonus, when its payment is reversed', async () => {
    await issue('aa', { destination: { kind: 'page', value: 'https://pay.example' } });
    node.pay('aa');
    books.watch();
    await time.advance(3 * SECOND);
    const reversals = [{ id: 'refund 1', units: -1_000_000n, why: 'refunded' }];
    node.settled.set('aa', { ...(node.settled.get('aa') as BackendPayment), reversals });
    await time.advance(10 * SECOND);
    await books.stop();
    [due, positions] = [new MemoryWorkflowSchedule(), new Map()];
    new Process().watch();
    await time.advance(SECOND);
    const moved = (await facts()).filter(({ type }) => type === 'CreditAdded' || type === 'CreditReversed');
    expect(moved).toMatchObject([
      { data: { amount: parseUsd('1').toString(), bonus: parseUsd('0.05').toString() } },
      {
        type: 'CreditReversed',
        data: {
          reversalId: 'lnd/refund 1',
          creditId: 'lnd/aa',
          why: 'refunded',
          amount: parseUsd('-1').toString(),
          bonus: parseUsd('-0.05').toString(),
        },
      },
    ]);
    expect(alarms).toEqual([]);
  });
});

describe('a subscription', () => {
  test('is reported when it is interrupted, and renewed after a second', async () => {
    await issue('aa');
    books.watch();
    await node.say(new Error('connection reset'));
    expect(alarms).toEqual(['lnd no longer reports payments; subscribing again']);
    expect(node.subscriptions).toBe(1);
    await time.advance(SECOND);
    expect(node.subscriptions).toBe(2);
    await node.say(node.pay('aa'));
    expect(await typesOf('aa')).toEqual(PAID);
  });

  test('is renewed with growing delays while it fails, until a subscription has lasted a minute', async () => {
    node.forbidden = true;
    books.watch();
    await time.advance(10 * MINUTE);
    expect(node.subscriptions).toBe(15);
    expect(alarms).toHaveLength(15);
    node.forbidden = false;
    await time.advance(3 * MINUTE);
    await node.say(new Error('connection reset'));
    await time.advance(SECOND);
    expect(node.subscriptions).toBe(17);
  });

  test('is renewed without a report when the node ends it', async () => {
    books.watch();
    await node.say('end');
    await time.advance(SECOND);
    expect([node.subscriptions, alarms]).toEqual([2, []]);
  });

  test('does not delay a payment by more than two seconds while it is interrupted', async () => {
    await issue('aa');
    books.watch();
    await time.advance(SECOND);
    await node.say(new Error('connection reset'));
    node.pay('aa');
    await time.advance(2 * SECOND);
    expect(await typesOf('aa')).toEqual(PAID);
  });

  test('ends with the lease, without a report', async () => {
    books.watch();
    await time.advance(MINUTE);
    await books.stop();
    await time.advance(MINUTE);
    expect([node.subscriptions, alarms]).toEqual([1, []]);
  });
});

describe('polling', () => {
  const timesIn = async (duration: number) => {
    const before = node.looks.length;
    await time.advance(duration);
    return node.looks.length - before;
  };

  test('repeats every two seconds for an open invoice, every minute for an expired one', async () => {
    await issue('aa');
    books.watch();
    await time.advance(SECOND);
    expect(await timesIn(14 * MINUTE)).toBe(14 * 30);
    await time.advance(2 * MINUTE);
    expect(await timesIn(10 * MINUTE)).toBe(10);
  });

  test('includes every invoice, even if it fails for some of them each time', async () => {
    for (const reference of ['bad', 'aa', 'worse', 'bb', 'cc']) await issue(reference);
    node.broken.add('bad').add('worse');
    for (const reference of ['aa', 'bb', 'cc']) node.pay(reference);
    books.watch();
    await time.advance(10 * SECOND);
    for (const reference of ['aa', 'bb', 'cc']) expect(await typesOf(reference)).toEqual(PAID);
    expect(alarms.length).toBeGreaterThan(0);
    node.broken.clear();
    node.pay('bad');
    await time.advance(MINUTE);
    expect(await typesOf('bad')).toEqual(PAID);
  });

  test('backs off while it fails, but still polls within two minutes', async () => {
    await issue('aa');
    node.broken.add('aa');
    books.watch();
    await time.advance(5 * MINUTE);
    const looks = node.looks.length;
    expect(looks).toBeLessThan(15);
    await time.advance(2 * MINUTE);
    expect(node.looks.length).toBeGreaterThanOrEqual(looks + 1);
  });

  test('skips invoices of other payment backends', async () => {
    await issue('aa', { backend: 'another' });
    books.watch();
    await time.advance(MINUTE);
    expect([node.askedAfter, alarms]).toEqual([[], []]);
  });

  test('combines invoices into batches if the backend supports it', async () => {
    Object.assign(node, { maxBatchSize: 2 });
    for (const reference of ['aa', 'bb', 'cc']) await issue(reference);
    node.pay('bb');
    books.watch();
    await time.advance(SECOND);
    expect(node.looks.slice(0, 2)).toEqual([['aa', 'bb'], ['cc']]);
    expect(await typesOf('bb')).toEqual(PAID);
  });

  test('stops when the lease ends', async () => {
    await issue('aa');
    books.watch();
    await time.advance(SECOND);
    await books.stop();
    expect(await timesIn(MINUTE)).toBe(0);
  });
});
