/**
 * A process that runs automatic top-ups dies before or after each of its actions in turn, and another one continues.
 * Runs in memory and in virtual time, with real invoices. `npm run prove:wallets` does the same with processes and a
 * relay.
 */

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  AutoTopupInvoices,
  AutoTopupLimits,
  type BackendPayment,
  CreateTopupHandler,
  createStreams,
  ExchangeRates,
  type PaymentBackend,
  PaymentBackendRegistry,
  PaymentMethods,
  PaymentRegistry,
  type PaymentRequest,
  type Streams,
  TopupPayments,
  type WalletConnection,
  type WalletResponse,
  Wallets,
} from '#application';
import { readPayments } from '#catalogue';
import { type AutoTopupEvent, type DomainEvent, UNRESTRICTED_ACCESS } from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  type CheckpointStore,
  createRootCause,
  type EventStore,
  formatUsd,
  NO_SNAPSHOTS,
  parseUsd,
  type Runtime,
  START_POSITION,
  type StoredEvent,
  StoreUnavailableError,
} from '#kernel';
import { runAutoTopupWorkflow, runTopupWorkflow } from '#sagas';
import { createTestRuntime } from '#testing';
import { LightningNode } from '../../../apps/sandbox/src/lightning/node.ts';
import { FakeClock, followClock } from '../../testing/src/fake-clock.ts';
import { sampleCases } from '../../testing/src/sample-cases.ts';
import { MemoryWorkflowSchedule } from '../../testing/src/simulation/memory-workflow-schedule.ts';

const SECOND = 1_000;
const ACCOUNT = '3f0e6c1e-7d51-4b0a-9a55-0c6f2a1c9e11';
const [ONE, OTHER] = ['aa'.repeat(32), 'bb'.repeat(32)];

/** Thrown by every action of a process that has died. */
class Died extends Error {}

type Act = <T>(what: string, work: () => Promise<T>) => Promise<T>;

/** The payment backend: the operator's Lightning node. */
class Node implements PaymentBackend {
  readonly name = 'lnd';
  readonly maxBatchSize = 100;
  readonly node = new LightningNode(() => Date.parse(time.now()));

  async createPayment({ units, memo, expirySeconds }: PaymentRequest) {
    const { hash, paymentRequest } = this.node.issue({ msat: units, memo, expirySeconds });
    const reference = hash.toString('hex');
    return { reference, destination: { kind: 'bolt11', value: paymentRequest } as const, paymentHash: reference };
  }

  async fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return references.flatMap((reference) => {
      const { payment } = this.node.find(reference) ?? {};
      if (!payment) return [];
      const receivedAt = new Date(payment.at * SECOND).toISOString();
      return [{ reference, id: reference, units: payment.msat, confirmations: 'final', receivedAt } as const];
    });
  }

  async *subscribe() {}
  async close(): Promise<void> {}

  /** @throws Error if the invoice is unknown, paid or expired, as a Lightning payment would fail */
  pay(invoice: string): void {
    const found = this.node.listAddedInvoices(0).find(({ paymentRequest }) => paymentRequest === invoice);
    if (!found || found.payment) throw new Error('invoice is already paid');
    if (this.node.getState(found) !== 'OPEN') throw new Error('invoice expired');
    this.node.settle(found, { msat: found.msat, at: this.node.getUnixTime(), report: 'never' });
    paid.push(invoice);
  }
}

/** How a wallet handles its `nth` request, counted from 1. */
type Behaviour = (nth: number, pay: () => void, hear: (answer: WalletResponse) => void) => void;

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'pays at once': (_, pay, hear) => {
    pay();
    hear({ code: 'PAID' });
  },
  'pays without a response': (_, pay) => pay(),
  'pays before it fails': (_, pay) => {
    pay();
    throw new Error('the connection is lost');
  },
  'loses the first request': (nth, pay, hear) => {
    if (nth === 1) throw new Error('the connection is lost');
    pay();
    hear({ code: 'PAID' });
  },
  'does not respond to the first request': (nth, pay) => {
    if (nth > 1) pay();
  },
  'fails, then pays': (nth, pay, hear) => {
    if (nth === 1) return hear({ code: 'PAYMENT_FAILED' });
    pay();
    hear({ code: 'PAID' });
  },
  'reports a failure, but pays later': (nth, pay, hear) => {
    if (nth > 1) return hear({ code: 'OTHER', why: 'already pending' });
    hear({ code: 'PAYMENT_FAILED' });
    void time.delay(12 * SECOND).then(pay);
  },
};

class Purse extends Wallets {
  constructor(private readonly act: Act) {
    super();
  }

  connect(): never {
    throw new Error('the wallet is already connected');
  }

  async pay({ pubkey }: WalletConnection, invoice: string, hear: (answer: WalletResponse) => void): Promise<void> {
    await this.act('request payment', async () => {
      asked.push({ pubkey, invoice });
      const settle = () => {
        try {
          node.pay(invoice);
        } catch {} // the network rejects the payment
      };
      behaviour(asked.length, settle, hear);
    });
  }

  async close(): Promise<void> {}
}

class Market extends ExchangeRates {
  async fetchUsdRate() {
    return { value: '100000', source: 'market', at: time.now() };
  }
}

let time: FakeClock;
let store: MemoryEventStore;
let due: MemoryWorkflowSchedule;
let positions: Map<string, bigint>;
let node: Node;
let behaviour: Behaviour;
let asked: { readonly pubkey: string; readonly invoice: string }[];
let paid: string[];
let stops: AbortController[];
let parts: Promise<void>[];
let token: number;

const runtime: Runtime = createTestRuntime({ ...followClock(() => time), chance: () => 0, reportError: () => {} });

beforeEach(() => start());
afterEach(() => stopAll());

function start(): void {
  time = new FakeClock('2026-11-20T12:00:00.000Z');
  [store, due, positions, node] = [new MemoryEventStore(), new MemoryWorkflowSchedule(), new Map(), new Node()];
  [behaviour, asked, paid, stops, parts, token] = [BEHAVIOURS['pays at once'] as Behaviour, [], [], [], [], 0];
}

async function stopAll(): Promise<void> {
  for (const stop of stops) stop.abort();
  await Promise.allSettled(parts);
}

function checkpointsOf(act: Act): CheckpointStore {
  return {
    load: async (reader) => positions.get(reader) ?? START_POSITION,
    save: (reader, position) => act('save', async () => void positions.set(reader, position)),
  };
}

const alive: Act = (_, work) => work();

function newLease() {
  const stop = new AbortController();
  stops.push(stop);
  return { stop, lease: { token: ++token, signal: stop.signal, isHeld: () => !stop.signal.aborted } };
}

const offered = () => new PaymentMethods(readPayments(), new PaymentBackendRegistry([node]), 50);

/** Runs the top-up workflow, which credits payments, in a process that does not die. */
function watch(): void {
  const { lease } = newLease();
  const streams = createStreams(store, NO_SNAPSHOTS, runtime);
  const { accounts, topups, challenges } = streams;
  const registry = new PaymentRegistry(streams.paymentClaims, time);
  const payments = new TopupPayments(new Market(), offered(), registry, time);
  parts.push(
    ...runTopupWorkflow(
      {
        eventReader: store,
        accounts,
        topups,
        challenges,
        registry,
        payments,
        schedule: due,
        checkpoints: checkpointsOf(alive),
        clock: time,
        runtime,
        backends: new PaymentBackendRegistry([node]),
        findTopups: async () => ({ ids: new Map(), isComplete: true }),
        pollsPerSecond: 1_000,
      },
      lease,
    ),
  );
}

/** Runs automatic top-ups in a process whose actions go through `act`, until `act` throws `Died`. */
function ask(act: Act = alive): void {
  const { stop, lease } = newLease();
  let dead = false;
  const doing: Act = async (what, work) => {
    if (dead) throw new Died();
    try {
      return await act(what, work);
    } catch (error) {
      if (error instanceof Died) {
        dead = true;
        stop.abort();
      }
      throw error;
    }
  };
  const appending: EventStore = Object.create(store, {
    append: { value: (...args: Parameters<EventStore['append']>) => doing('append', () => store.append(...args)) },
  });
  const streams = createStreams(appending, NO_SNAPSHOTS, runtime);
  const requesting: PaymentBackend = Object.create(node, {
    createPayment: { value: (wanted: PaymentRequest) => doing('request', () => node.createPayment(wanted)) },
  });
  const requested = new PaymentMethods(readPayments(), new PaymentBackendRegistry([requesting]), 50);
  const creation = new CreateTopupHandler({
    streams: streams as Streams,
    paymentMethods: requested,
    rates: new Market(),
    clock: time,
    runtime,
  });
  parts.push(
    ...runAutoTopupWorkflow(
      {
        eventReader: store,
        streams,
        backends: new PaymentBackendRegistry([node]),
        wallets: new Purse(doing),
        clock: time,
        runtime,
        invoices: new AutoTopupInvoices(streams.topups, creation),
        secrets: { open: () => 'a secret' },
        limits: new AutoTopupLimits(50, parseUsd('1000')),
        schedule: {
          findDue: (...args) => due.findDue(...args),
          listWaiting: (name) => due.listWaiting(name),
          wake: (...args) => doing('wake', () => due.wake(...args)),
          reschedule: (...args) => doing('reschedule', () => due.reschedule(...args)),
        },
        checkpoints: checkpointsOf(doing),
      },
      lease,
    ).map((part) => part.catch(() => {})),
  );
}

const cause = createRootCause('test', 'test');

async function connect(pubkey = ONE): Promise<void> {
  const { accounts, autoTopups } = createStreams(store, NO_SNAPSHOTS, runtime);
  const secret = { key: '', box: '' };
  const key = {
    keyId: 'k',
    name: 'k',
    hash: 'h',
    secret,
    limit: null,
    resetPeriod: null,
    expireAt: null,
    ...UNRESTRICTED_ACCESS,
  };
  const at = time.now();
  await accounts.run(ACCOUNT, { type: 'OpenAccount', data: { key, at } }, cause);
  const wallet = { pubkey, relays: ['wss://relay.example'], encryption: 'nip44_v2' } as const;
  const amounts = { threshold: parseUsd('10').toString(), amount: parseUsd('10').toString() };
  await autoTopups.run(ACCOUNT, { type: 'ConnectWallet', data: { wallet, secret, ...amounts, at } }, cause);
}

async function balance(): Promise<string> {
  return formatUsd((await createStreams(store, NO_SNAPSHOTS, runtime).accounts.read(ACCOUNT)).available);
}

async function journal(): Promise<readonly StoredEvent<AutoTopupEvent>[]> {
  const all: StoredEvent<DomainEvent>[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as typeof all));
  return all.filter(({ stream }) => stream === `autotopup-${ACCOUNT}`) as never;
}

const pass = (seconds: number) => time.advance(seconds * SECOND);

/**
 * Runs a process that dies at its `n`th action: before the action, or after it so that its result is lost.
 * @returns whether it died before the automatic top-up had ended
 */
async function dieAt(n: number, behind: boolean): Promise<boolean> {
  let actions = 0;
  let died = false;
  ask(async (_, work) => {
    if (++actions < n) return work();
    died = true;
    if (behind) await work();
    throw new Died();
  });
  await pass(20);
  return died && (await journal()).every(({ type }) => type !== 'AutoTopupEnded');
}

/**
 * Dying after an action stores the same as dying before the next one. Only the memory of the process differs, so two
 * wallets are enough for `before`.
 */
const DEATHS = [
  ...['pays at once', 'loses the first request'].map((wallet) => [wallet, 'before'] as const),
  ...Object.keys(BEHAVIOURS).map((wallet) => [wallet, 'after'] as const),
];

test.each(sampleCases(DEATHS, 3))(
  'with a wallet that %s, a process that dies %s any action is replaced; 30 s later one payment has arrived',
  async (wallet, where) => {
    for (let n = 1, open = true; open; n++) {
      start();
      behaviour = BEHAVIOURS[wallet] as Behaviour;
      await connect();
      watch();
      open = await dieAt(n, where === 'after');
      ask();
      await pass(30);
      expect({ n, balance: await balance(), paid: paid.length }).toEqual({ n, balance: '10.5', paid: 1 });
      expect(new Set(asked.map(({ invoice }) => invoice)).size).toBe(1);
      await stopAll();
      expect(open || n > 10).toBe(true);
    }
  },
);

test('another invoice is created only after the last one has expired unpaid', async () => {
  behaviour = () => {};
  await connect();
  watch();
  ask();
  await pass(14 * 60);
  expect(new Set(asked.map(({ invoice }) => invoice)).size).toBe(1);
  behaviour = BEHAVIOURS['pays at once'] as Behaviour;
  await pass(4 * 60);
  const types = (await journal()).map(({ type, data }) => (type === 'AutoTopupEnded' ? data.outcome : type));
  expect(types.filter((each) => ['AutoTopupBegun', 'paid', 'expired'].includes(each))).toEqual([
    'AutoTopupBegun',
    'expired',
    'AutoTopupBegun',
    'paid',
  ]);
  expect(await balance()).toBe('10.5');
});

test('a new wallet is requested to pay only after the previous wallet can no longer pay', async () => {
  behaviour = () => {};
  await connect();
  watch();
  ask();
  await pass(5);
  await connect(OTHER);
  behaviour = BEHAVIOURS['pays at once'] as Behaviour;
  await pass(15 * 60);
  expect(new Set(asked.map(({ pubkey }) => pubkey))).toEqual(new Set([ONE]));
  await pass(4 * 60);
  expect(asked.at(-1)?.pubkey).toBe(OTHER);
  expect(asked.at(-1)?.invoice).not.toBe(asked[0]?.invoice);
  expect([await balance(), paid.length]).toEqual(['10.5', 1]);
});

test('a wallet response is recorded after a store outage, so that an exhausted quota pauses requests', async () => {
  let backAt = 0;
  behaviour = (_, __, hear) => {
    backAt = time.nowMs() + 40 * SECOND;
    hear({ code: 'QUOTA_EXCEEDED' });
  };
  await connect();
  watch();
  ask((what, work) => {
    if (what === 'append' && time.nowMs() < backAt) throw new StoreUnavailableError('away');
    return work();
  });
  await pass(60);
  const types = (await journal()).map(({ type }) => type);
  expect(types).toEqual(expect.arrayContaining(['WalletAnswered', 'AutoTopupPaused', 'WalletRequestEnded']));
  expect(asked).toHaveLength(1);
});
