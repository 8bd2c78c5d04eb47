/** One payment is credited once, whatever its backend reports. */

import { beforeEach, describe, expect, test } from '@jest/globals';
import { createStreams, PayerFactory, PaymentRegistry, type Streams } from '#application';
import type { ChallengeCommand, DomainEvent, TopupCommand } from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  ActionRequiredError,
  type CheckpointStore,
  createRootCause,
  NO_SNAPSHOTS,
  parseUsd,
  START_POSITION,
  type StoredEvent,
} from '#kernel';
import { createTestRuntime } from '#testing';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { createIssuedChallenge } from '../../testing/src/scenarios/issued-challenge.ts';
import { createFullPayment, createIssuedInvoice } from '../../testing/src/scenarios/top-ups.ts';
import { followPaymentClaims } from './payment-claims.ts';

const CAUSE = createRootCause('test', 'claims');
const PAYMENT = { backend: 'lnd', id: 'ab' };

let time: FakeClock;
let store: MemoryEventStore;
let streams: Streams;
let alarms: string[];
let positions: Map<string, bigint>;

const runtime = createTestRuntime({
  sleep: () => new Promise<void>((resolve) => setImmediate(resolve)),
  reportError: (problem, error) => {
    expect(error).toBeInstanceOf(ActionRequiredError);
    alarms.push(problem);
  },
});
const checkpoints: CheckpointStore = {
  load: async (reader) => positions.get(reader) ?? START_POSITION,
  save: async (reader, position) => void positions.set(reader, position),
};

/** A process with its own write paths. */
const openRegistry = () => new PaymentRegistry(createStreams(store, NO_SNAPSHOTS, runtime).paymentClaims, time);

async function readEvents(stream: string): Promise<readonly StoredEvent<DomainEvent>[]> {
  const all: StoredEvent<DomainEvent>[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as typeof all));
  return all.filter((event) => event.stream === stream);
}

const listTypes = async (stream: string) => (await readEvents(stream)).map(({ type }) => type);

beforeEach(() => {
  [time, store, alarms, positions] = [new FakeClock('2026-11-20T12:00:00.000Z'), new MemoryEventStore(), [], new Map()];
  streams = createStreams(store, NO_SNAPSHOTS, runtime);
});

describe('a payment', () => {
  test('belongs to the first claimant, which may claim it again after a crash', async () => {
    expect(await openRegistry().claim(PAYMENT, 'topup-a', CAUSE)).toBe(true);
    expect(await openRegistry().claim(PAYMENT, 'topup-b', CAUSE)).toBe(false);
    expect(await openRegistry().claim(PAYMENT, 'topup-a', CAUSE)).toBe(true);
    expect(await openRegistry().claim(PAYMENT, 'topup-b', CAUSE)).toBe(false);
    expect(await listTypes('payment-lnd/ab')).toEqual(['PaymentClaimed', 'PaymentContested']);
  });

  test('belongs to one claimant if several processes claim it at the same time', async () => {
    const claimants = Array.from({ length: 8 }, (_, i) => `topup-${i}`);
    const claims = await Promise.all(claimants.map((claimant) => openRegistry().claim(PAYMENT, claimant, CAUSE)));
    expect(claims.filter((isOwner) => isOwner)).toHaveLength(1);
    expect((await listTypes('payment-lnd/ab')).toSorted()).toEqual([
      'PaymentClaimed',
      ...Array.from({ length: 7 }, () => 'PaymentContested'),
    ]);
  });

  test('is another one at another backend', async () => {
    await openRegistry().claim(PAYMENT, 'topup-a', CAUSE);
    expect(await openRegistry().claim({ ...PAYMENT, backend: 'cln' }, 'topup-b', CAUSE)).toBe(true);
  });

  test('is not recorded for a top-up that has not claimed it', async () => {
    const run = (command: TopupCommand) => streams.topups.run('t', command, CAUSE);
    await run({ type: 'IssueInvoice', data: createIssuedInvoice() });
    const payment = { ...createFullPayment(createIssuedInvoice()), isClaimed: false };
    await run({ type: 'RecordPayment', data: payment });
    expect(await listTypes('topup-t')).toEqual(['InvoiceIssued']);
  });

  test('of a top-up does not pay for a request', async () => {
    const issued = createIssuedChallenge();
    const run = (command: ChallengeCommand) => streams.challenges.run('c', command, CAUSE);
    await run({ type: 'IssueChallenge', data: issued });
    const payment = { backend: issued.backend, id: issued.paymentHash };
    await openRegistry().claim(payment, 'topup-a', CAUSE);
    const challenge = { challengeId: 'c', payment, request: issued.request, priceList: issued.priceList };
    const payer = new PayerFactory(streams, {
      clock: time,
      getProcessId: () => 'gateway-1',
      events: store,
      runtime,
    }).forChallenge(challenge);
    const request = {
      holdId: 'h',
      query: issued.query,
      priceList: issued.priceList,
      minAmount: parseUsd('0'),
      maxAmount: parseUsd('1'),
      lifetimeMs: 60_000,
    };
    await expect(payer.hold(request)).rejects.toMatchObject({ code: 'challenge_used' });
    expect(await listTypes('challenge-c')).toEqual(['ChallengeIssued']);
  });
});

describe('the payments of a version without claims', () => {
  /** Follows the log in a new process until it has caught up. */
  async function follow(): Promise<void> {
    const stop = new AbortController();
    const { task, claimed } = followPaymentClaims(
      { eventReader: store, registry: openRegistry(), challenges: streams.challenges, checkpoints, runtime },
      { token: 1, signal: stop.signal, isHeld: () => true },
    );
    await claimed;
    stop.abort();
    await task;
  }

  /** Records a payment of a top-up without a claim. */
  async function recordPayment(topupId: string): Promise<void> {
    const invoice = createIssuedInvoice({ reference: topupId });
    const run = (command: TopupCommand) => streams.topups.run(topupId, command, CAUSE);
    await run({ type: 'IssueInvoice', data: invoice });
    await run({ type: 'RecordPayment', data: createFullPayment(invoice, { payment: PAYMENT }) });
  }

  test('are claimed once, and the second top-up with the same payment is reported', async () => {
    await recordPayment('a');
    await recordPayment('b');
    await follow();
    expect(await readEvents('payment-lnd/ab')).toMatchObject([
      { type: 'PaymentClaimed', data: { payment: PAYMENT, claimant: 'topup-a' } },
      { type: 'PaymentContested', data: { payment: PAYMENT, claimant: 'topup-b', owner: 'topup-a' } },
    ]);
    await follow();
    await follow();
    expect(alarms).toEqual(['payment lnd/ab of topup-a was also reported for topup-b, which gets nothing for it']);
    expect(await listTypes('payment-lnd/ab')).toHaveLength(2);
  });

  test('include those of challenges', async () => {
    const issued = createIssuedChallenge();
    const run = (command: ChallengeCommand) => streams.challenges.run('c', command, CAUSE);
    await run({ type: 'IssueChallenge', data: issued });
    await run({ type: 'RecordChallengePayment', data: { units: BigInt(issued.units), at: time.now() } });
    await follow();
    expect(await readEvents(`payment-lnd/${issued.paymentHash}`)).toMatchObject([
      { data: { claimant: 'challenge-c' } },
    ]);
  });

  test('are claimed without an end if there are none', async () => {
    await follow();
    expect(alarms).toEqual([]);
  });
});
