import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BackendPayment,
  Clock,
  type Crediting,
  ExchangeRates,
  openStreams,
  type Rate,
  TopupPayments,
  UpstreamFailure,
} from '#application';
import type { DomainEvent } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { type CheckpointStore, pump, type Recorded, type Sink, START, StoreUnavailable, usd } from '#kernel';
import { sagaSink, topupCrediting } from '#sagas';
import { BY_A_TEST, issuedInvoice } from '#testing';

const EXPIRES_AT = '2026-11-20T12:15:00.000Z';
const secret = { key: '', box: '' };

class StandingClock extends Clock {
  milliseconds(): number {
    return Date.parse('2026-11-20T12:00:00.000Z');
  }
}

/** A market that is closed until it has a rate. */
class Market extends ExchangeRates {
  rate: string | undefined;

  async usdPer(): Promise<Rate> {
    if (this.rate === undefined) throw new UpstreamFailure('upstream_unavailable', 'No exchange rate is available');
    return { value: this.rate, source: 'market', at: '2026-11-20T12:30:00.000Z' };
  }
}

/** Keeps checkpoints, and loses its memory when it is told to. */
class Checkpoints implements CheckpointStore {
  position = START;

  async load(): Promise<bigint> {
    return this.position;
  }

  async save(_: string, position: bigint): Promise<void> {
    if (position > this.position) this.position = position;
  }
}

let store: MemoryEventStore;
let market: Market;
let checkpoints: Checkpoints;
let alarms: string[];
let runtime: Parameters<typeof openStreams>[2];
let books: Process;

/** What one process has: write paths of its own, and a saga that sends its wishes through them. */
class Process {
  readonly streams = openStreams(store, { load: async () => undefined, save: async () => {} }, runtime);
  readonly payments = new TopupPayments(this.streams.topups, this.streams.accounts, market, new StandingClock());
  readonly seen: string[] = [];
  /** Happens in place of the wish that it names. */
  readonly trouble = new Map<string, () => Promise<void>>();

  readonly sink: Sink = sagaSink(topupCrediting, (wish) => this.send(wish), checkpoints, runtime);

  /** Until everything is done that there is to do now, as often as it takes. */
  async catchUp(): Promise<void> {
    const done = new AbortController();
    const end = await lastPosition();
    const apply: Sink['apply'] = async (batch) => {
      await this.sink.apply(batch);
      if (batch.position >= end) done.abort();
    };
    if ((await this.sink.checkpoint()) < end) {
      await pump((after, signal) => store.follow(after, signal), { ...this.sink, apply }, done.signal, runtime);
    }
  }

  private async send(wish: Crediting): Promise<void> {
    const { topupId } = wish;
    this.seen.push(topupId);
    const trouble = this.trouble.get(topupId);
    this.trouble.delete(topupId);
    await trouble?.();
    await this.payments.credit(wish);
  }
}

beforeEach(() => {
  store = new MemoryEventStore();
  market = new Market();
  checkpoints = new Checkpoints();
  alarms = [];
  runtime = { newId: randomUUID, sleep: async () => {}, alarm: (problem) => void alarms.push(problem) };
  books = new Process();
});

async function facts(stream?: string): Promise<readonly Recorded<DomainEvent>[]> {
  const all: Recorded<DomainEvent>[] = [];
  for await (const { events } of store.history(START)) all.push(...(events as typeof all));
  return stream === undefined ? all : all.filter((fact) => fact.stream === stream);
}

const lastPosition = async () => (await facts()).at(-1)?.position ?? START;
const typesOf = async (stream: string) => (await facts(stream)).map(({ type }) => type);
const credits = async () => (await facts()).flatMap(({ type, data }) => (type === 'CreditAdded' ? [data] : []));

async function openAccount(): Promise<string> {
  const id = randomUUID();
  const key = { keyId: 'k', name: 'k', hash: 'h', secret, limit: null, resetPeriod: null, expireAt: null };
  await books.streams.accounts.run(
    id,
    { type: 'OpenAccount', data: { key, at: '2026-11-20T12:00:00.000Z' } },
    BY_A_TEST,
  );
  return id;
}

/** An invoice of a dollar; bitcoin was at 100,000 when it was made. */
async function issue(topupId: string, accountId: string): Promise<void> {
  const data = issuedInvoice({ accountId, reference: `hash of ${topupId}`, expiresAt: EXPIRES_AT });
  await books.streams.topups.run(topupId, { type: 'IssueInvoice', data }, BY_A_TEST);
}

function pay(topupId: string, receivedAt = '2026-11-20T12:01:00.000Z', units = 1_000_000n): Promise<void> {
  const reference = `hash of ${topupId}`;
  const payment: BackendPayment = { reference, id: reference, units, confirmations: 'final', receivedAt };
  const topup = { topupId, coin: 'BTC' as const, backend: 'lnd', reference, expiresAt: EXPIRES_AT };
  return books.payments.record(topup, payment);
}

async function paid(...topupIds: readonly string[]): Promise<void> {
  for (const topupId of topupIds) {
    await issue(topupId, await openAccount());
    await pay(topupId);
  }
}

describe('a payment that was received', () => {
  test('is credited to its account, and then marked as credited', async () => {
    await paid('t1');
    await books.catchUp();
    expect(await credits()).toMatchObject([{ creditId: 'lnd/hash of t1', amount: usd('1').toString() }]);
    expect(await typesOf('topup-t1')).toEqual(['InvoiceIssued', 'PaymentReceived', 'TopupCredited']);
  });

  test('is credited once when the saga has forgotten how far it had come', async () => {
    await paid('t1', 't2');
    await books.catchUp();
    const before = await facts();
    checkpoints.position = START;
    await new Process().catchUp();
    expect(await facts()).toEqual(before);
    expect(alarms).toEqual([]);
  });

  test('is credited once by two processes that both believe it is their turn', async () => {
    const topups = Array.from({ length: 20 }, (_, i) => `t${i}`);
    await paid(...topups);
    const both = [new Process(), new Process()];
    await Promise.all(both.map((each) => each.catchUp()));
    expect(await credits()).toHaveLength(topups.length);
    expect((await facts()).filter(({ type }) => type === 'TopupCredited')).toHaveLength(topups.length);
    expect(alarms).toEqual([]);
  });

  test('is credited once when the process dies between the credit and its mark', async () => {
    await paid('t1');
    const dying = new Process();
    dying.trouble.set('t1', async () => {
      dying.streams.topups.run = () => Promise.reject(new Error('killed'));
    });
    for await (const batch of store.history(START)) await expect(dying.sink.apply(batch)).rejects.toThrow('killed');
    expect(await typesOf('topup-t1')).toEqual(['InvoiceIssued', 'PaymentReceived']);
    expect(checkpoints.position).toBe(START);
    await new Process().catchUp();
    expect(await credits()).toHaveLength(1);
    expect(await typesOf('topup-t1')).toEqual(['InvoiceIssued', 'PaymentReceived', 'TopupCredited']);
  });

  test('is tried again, and those behind it wait, while the books cannot be written', async () => {
    await paid('t1', 't2');
    books.trouble.set('t1', () => Promise.reject(new StoreUnavailable('away')));
    await books.catchUp();
    expect(books.seen).toEqual(['t1', 't1', 't2']);
    expect(await credits()).toHaveLength(2);
    expect(alarms).toEqual(['topup-crediting could not apply a batch; trying again']);
  });

  test('that can never be credited is an alarm, and those behind it go on', async () => {
    await issue('t1', randomUUID());
    await pay('t1');
    await paid('t2');
    await books.catchUp();
    expect(await credits()).toMatchObject([{ creditId: 'lnd/hash of t2' }]);
    expect(alarms).toEqual(['topup-crediting asked for something that is refused']);
  });

  test('is not looked at again by a process that starts later', async () => {
    await paid('t1', 't2');
    await books.catchUp();
    await paid('t3');
    const next = new Process();
    await next.catchUp();
    expect(next.seen).toEqual(['t3']);
  });
});

describe('a payment that was reversed', () => {
  const reversal = {
    reversalId: 'refund 1',
    payment: { backend: 'lnd', id: 'hash of t1' },
    units: -1_000_000n,
    why: 'refunded',
  };
  const balance = async () => {
    const moved = (await facts()).flatMap(({ type, data }) =>
      type === 'CreditAdded' || type === 'CreditReversed' ? [data] : [],
    );
    return moved.reduce((sum, { amount, bonus }) => sum + BigInt(amount) + BigInt(bonus), 0n);
  };

  test('takes its credit back, the bonus too, once', async () => {
    await paid('t1');
    await books.catchUp();
    await books.payments.reverse('t1', reversal);
    await books.payments.reverse('t1', reversal);
    await books.catchUp();
    checkpoints.position = START;
    await new Process().catchUp();
    expect(await typesOf('topup-t1')).toEqual(['InvoiceIssued', 'PaymentReceived', 'TopupCredited', 'PaymentReversed']);
    expect(await balance()).toBe(0n);
    expect((await facts()).at(-1)).toMatchObject({
      type: 'CreditReversed',
      data: { reversalId: 'lnd/refund 1', creditId: 'lnd/hash of t1', why: 'refunded' },
    });
    expect(alarms).toEqual([]);
  });

  test('before it was credited is credited and taken back in this order', async () => {
    await paid('t1');
    await books.payments.reverse('t1', reversal);
    await books.catchUp();
    expect(await balance()).toBe(0n);
    expect(alarms).toEqual([]);
  });
});

describe('the checkpoint', () => {
  test('moves once everything that a batch asks for is done', async () => {
    await paid('t1', 't2');
    books.trouble.set('t2', async () => expect(checkpoints.position).toBe(START));
    const end = await lastPosition();
    await books.catchUp();
    expect(checkpoints.position).toBeGreaterThanOrEqual(end);
    expect(alarms).toEqual([]);
  });

  test('moves past facts that nothing follows from', async () => {
    await openAccount();
    await books.catchUp();
    expect(checkpoints.position).toBe(await lastPosition());
    expect(books.seen).toEqual([]);
  });
});

describe('a payment that is reported', () => {
  beforeEach(async () => issue('t1', await openAccount()));

  test('twice is received once', async () => {
    await pay('t1');
    await pay('t1');
    expect(await typesOf('topup-t1')).toEqual(['InvoiceIssued', 'PaymentReceived']);
  });

  test('again with another amount is refused', async () => {
    await pay('t1');
    await expect(pay('t1', undefined, 2_000_000n)).rejects.toMatchObject({ code: 'payment_conflict' });
  });

  test('in time needs no rate but that of its invoice', async () => {
    await pay('t1', '2026-11-20T12:16:00.000Z'); // to the second the grace after the expiry
    expect((await facts()).at(-1)).toMatchObject({
      data: { amount: usd('1').toString(), rate: { value: '100000.00' } },
    });
  });

  test('late waits until there is a rate, and is worth that', async () => {
    await expect(pay('t1', '2026-11-20T12:16:00.001Z')).rejects.toMatchObject({ code: 'upstream_unavailable' });
    expect(await typesOf('topup-t1')).toEqual(['InvoiceIssued']);
    market.rate = '50000.00';
    await pay('t1', '2026-11-20T12:16:00.001Z');
    await books.catchUp();
    expect(await credits()).toMatchObject([{ amount: usd('0.5').toString(), bonus: usd('0.025').toString() }]);
    const rate = { value: '50000.00', source: 'market', at: '2026-11-20T12:30:00.000Z' };
    expect((await facts('topup-t1'))[1]).toMatchObject({ data: { rate } });
  });

  test('late a second time keeps the rate of the first', async () => {
    market.rate = '50000.00';
    await pay('t1', '2026-11-20T18:00:00.000Z');
    market.rate = '80000.00';
    await pay('t1', '2026-11-20T18:00:00.000Z');
    await books.catchUp();
    expect(await credits()).toMatchObject([{ amount: usd('0.5').toString() }]);
  });

  test('of a top-up that is not there is refused', async () => {
    await expect(pay('t2')).rejects.toMatchObject({ code: 'topup_not_found' });
  });
});

test('every fact says what it belongs to and what led to it', async () => {
  await paid('t1');
  await books.catchUp();
  const all = await facts();
  const find = (wanted: DomainEvent['type']) => all.find(({ type }) => type === wanted);
  const watch = { actor: 'saga:invoice-watch', $correlationId: 't1', $causationId: 't1' };
  expect(find('PaymentReceived')?.metadata).toEqual(watch);
  const credited = { actor: 'saga:topup-crediting', $correlationId: 't1', $causationId: find('PaymentReceived')?.id };
  expect(find('CreditAdded')?.metadata).toEqual(credited);
  expect(find('TopupCredited')?.metadata).toEqual(credited);
});
