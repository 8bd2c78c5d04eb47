import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AccountState,
  type AutoTopupState,
  type ChallengeState,
  type DomainEvent,
  toPostings,
  UNRESTRICTED_ACCESS,
  type VideoState,
} from '#domain';
import { type EffectOutcome, money, type PicoUsd, parseUsd, type StoredEvent } from '#kernel';
import { createCharge, createIssuedChallenge, createIssuedInvoice } from '#testing';
import { Auditor, type AuditorOptions } from './auditor.ts';
import { DecidedHistory, type HistoryCommand } from './decided-history.ts';

const START = Date.parse('2026-11-27T22:00:00.000Z');
const HOUR_MS = 3_600_000;
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;

/** Instants within two months, so that they are in several windows of every reset period. */
const hour = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 60 * 24 }));
const toInstant = (hours: number) => new Date(START + hours * HOUR_MS).toISOString();
const at = hour.map(toInstant);
/** Up to 0.004 USD: a few holds reach the limit of a key. */
const amount = fc.bigInt({ min: 0n, max: 400n }).map((units) => (units * 10_000_000n) as PicoUsd);
const holdId = fc.integer({ min: 0, max: 9 }).map((id) => `h${id}`);
const keyId = fc.constantFrom('k1', 'k2', null);
const owner = fc.constantFrom('gateway-1', 'gateway-2');
const limit = fc.constantFrom(parseUsd('0.01').toString(), parseUsd('0.02').toString());
const period = fc.constantFrom('daily', 'weekly', 'monthly', null);
const charge = fc
  .record({ price: amount, cost: amount })
  .map(({ price, cost }) => createCharge({ price: price.toString(), cost: cost.toString() }));
const account = (command: fc.Arbitrary<Extract<HistoryCommand, ['account', unknown]>[1]>) =>
  command.map((decided): HistoryCommand => ['account', decided]);

const createKey = (id: string) =>
  fc.record({ limit, period, at }).map(({ limit, period, at }) => ({
    type: 'CreateKey' as const,
    data: {
      key: {
        keyId: id,
        name: id,
        hash: id,
        secret: { key: '', box: '' },
        ...UNRESTRICTED_ACCESS,
        limit,
        resetPeriod: period,
        expireAt: null,
      },
      at,
    },
  }));

/** Commands that end holds, for payers of both kinds. */
const holdCommand = fc.oneof(
  fc.record({ holdId, charge, at }).map((data) => ({ type: 'SettleHold' as const, data })),
  // Only charges of processes are absorbed, not those of jobs.
  fc
    .record({ holdId: fc.constantFrom('h0', 'h1', 'h2'), charge, at })
    .map((data) => ({ type: 'AbsorbCharge' as const, data })),
  fc
    .record({
      holdId,
      errorCode: fc.constantFrom('upstream_error', 'invalid_request'),
      reason: fc.constant(''),
      attempts: fc.constant([]),
      absorbed: fc.option(charge),
      at,
    })
    .map(({ absorbed, ...data }) => ({
      type: 'ReleaseHold' as const,
      data: { ...data, ...(absorbed ? { absorbed } : {}) },
    })),
  at.map((before) => ({ type: 'ExpireHolds' as const, data: { before, at: before } })),
  fc.record({ owner, before: at, at }).map((data) => ({ type: 'AbandonHolds' as const, data })),
  fc
    .record({ holdId: fc.constantFrom('h8', 'h9'), at })
    .map(({ holdId, at }) => ({ type: 'KeepHold' as const, data: { holdId, owner: `video-${holdId}`, at } })),
);

const accountCommand = account(
  fc.oneof(
    {
      weight: 2,
      arbitrary: fc
        .record({ creditId: fc.constantFrom('c1', 'c2', 'c3'), amount, bonus: amount, at })
        .map((data) => ({ type: 'AddCredit' as const, data: { ...data, method: 'btc-lightning' } })),
    },
    {
      weight: 1,
      arbitrary: fc
        .record({ reversalId: holdId, creditId: fc.constantFrom('c1', 'c2'), amount, bonus: amount, at })
        .map(({ amount, bonus, ...data }) => ({
          type: 'ReverseCredit' as const,
          data: {
            ...data,
            amount: money.negate(amount),
            bonus: money.negate(bonus),
            method: 'btc-lightning',
            why: 'refunded',
          },
        })),
    },
    {
      weight: 1,
      arbitrary: fc
        .record({ adjustmentId: holdId, amount, isDebit: fc.boolean(), at })
        .map(({ amount, isDebit, ...data }) => ({
          type: 'AdjustBalance' as const,
          data: {
            ...data,
            amount: isDebit ? money.negate(amount) : amount,
            reason: '',
            actor: { name: 'a', isVerified: true },
          },
        })),
    },
    {
      weight: 6,
      arbitrary: fc
        .record({ holdId, keyId, owner, minAmount: amount, more: amount, life: hour, from: hour })
        .map(({ more, life, from, ...data }) => ({
          type: 'HoldFunds' as const,
          data: {
            ...data,
            maxAmount: money.add(data.minAmount, more),
            partialHold: { minAmount: data.minAmount, divisor: 3n },
            expiresAt: toInstant(from + life),
            query,
            at: toInstant(from),
          },
        })),
    },
    {
      weight: 4,
      arbitrary: fc
        .record({ holdId, minAmount: amount, more: amount, isFinal: fc.boolean(), at })
        .map(({ more, minAmount, ...data }) => ({
          type: 'ExtendHold' as const,
          data: { ...data, minAmount, targetAmount: money.add(minAmount, more), knownAmount: 0n as PicoUsd },
        })),
    },
    { weight: 8, arbitrary: holdCommand },
    {
      weight: 1,
      arbitrary: fc
        .record({ keyId: fc.constantFrom('k1', 'k2'), at, limit, period, blocked: fc.boolean() })
        .map(({ keyId, at, limit, period, blocked }) => ({
          type: 'UpdateKey' as const,
          data: { keyId, changes: { limit, resetPeriod: period, blocked: blocked && limit.length > 11 }, at },
        })),
    },
  ),
);

function audit(events: readonly StoredEvent[], options: AuditorOptions = {}): Auditor {
  const auditor = new Auditor(options);
  for (const event of events) auditor.apply(event);
  return auditor;
}

/** Compares the ledger of the auditor with the postings of the domain. */
function expectSameLedger(auditor: Auditor, events: readonly StoredEvent<DomainEvent>[]): void {
  const expected: Record<string, bigint> = {};
  for (const { account, amount } of events.flatMap((event) => toPostings(event.stream, event)))
    expected[account] = (expected[account] ?? 0n) + amount;
  const withoutZeros = (balances: Iterable<readonly [string, bigint]>) =>
    Object.fromEntries([...balances].filter(([, balance]) => balance !== 0n));
  expect(withoutZeros(auditor.getLedger())).toEqual(withoutZeros(Object.entries(expected)));
}

/** Reverses the charges that some settled holds have, after all other commands. */
function reverseCharges(history: DecidedHistory, picks: readonly number[], at: string): void {
  const { events } = history;
  const settled = events.flatMap((event) => (event.type === 'HoldSettled' ? [event] : []));
  for (const pick of picks) {
    const event = settled[pick % Math.max(settled.length, 1)];
    if (!event) continue;
    const command = { type: 'ReverseCharge', data: { settled: event.data, at } } as const;
    const [category, id] = event.stream.split('-') as ['account' | 'challenge', string];
    history.run(id, category, command);
  }
}

const accountHistory = fc
  .record({
    keys: fc.tuple(createKey('k1'), createKey('k2')),
    first: fc.array(accountCommand, { minLength: 20, maxLength: 60 }),
    picks: fc.array(fc.nat(), { maxLength: 3 }),
    rest: fc.array(accountCommand, { maxLength: 20 }),
    end: at,
  })
  .map(({ keys, first, picks, rest, end }) => {
    const history = new DecidedHistory();
    const opening = { amount: parseUsd('0.05'), bonus: parseUsd('0'), method: 'btc-lightning', at: toInstant(0) };
    history.run('a', 'account', { type: 'OpenAccount', data: { at: toInstant(0) } });
    history.run('a', 'account', { type: 'AddCredit', data: { creditId: 'c0', ...opening } });
    for (const command of keys) history.run('a', 'account', command);
    for (const command of first) history.run('a', ...command);
    reverseCharges(history, picks, end);
    for (const command of rest) history.run('a', ...command);
    return history;
  });

describe('an account after random commands', () => {
  test('breaks no rule, and has the balance and the keys that the domain knows', () => {
    fc.assert(
      fc.property(accountHistory, (history) => {
        const auditor = audit(history.events, { allowsUnpaidCredits: true });
        expect(auditor.findings).toEqual([]);
        expectSameLedger(auditor, history.events);
        const state = history.read<AccountState>('account-a');
        const audited = auditor.getAccount('a');
        expect([audited?.available, audited?.held]).toEqual([state.available, state.held]);
        expect([...(audited?.holds.keys() ?? [])].toSorted()).toEqual([...state.holds.keys()].toSorted());
        for (const [keyId, key] of state.keys) {
          const { usedInAll, used, window } = audited?.keys.get(keyId) ?? {};
          expect([usedInAll, used?.get(window ?? '') ?? 0n, window]).toEqual([key.usedInAll, key.used, key.window]);
        }
      }),
    );
  });

  test('gives a finding if an event is stored twice, or if an amount of money differs', () => {
    const MONEY_FIELDS = ['amount', 'held', 'charged'] as const;
    fc.assert(
      fc.property(accountHistory, fc.nat(), fc.boolean(), ({ events }, pick, isRepeated) => {
        const isMoney = ({ type, data }: StoredEvent<DomainEvent>) =>
          type !== 'BalanceAdjusted' && type !== 'CreditReversed' && MONEY_FIELDS.some((field) => field in data);
        const isChangeable = (event: StoredEvent<DomainEvent>) => isMoney(event) && event.type !== 'CreditAdded';
        const candidates = events.filter(isRepeated ? isMoney : isChangeable);
        fc.pre(candidates.length > 0);
        const event = candidates[pick % candidates.length] as StoredEvent<DomainEvent>;
        const data: Record<string, unknown> = { ...event.data };
        for (const field of MONEY_FIELDS)
          if (field in data) data[field] = (BigInt(data[field] as string) + 1n).toString();
        const changed = { ...event, data } as StoredEvent<DomainEvent>;
        const mutated = events.flatMap((other) =>
          other !== event ? [other] : isRepeated ? [event, { ...event, id: 'again' }] : [changed],
        );
        const renumbered = mutated.map((other, i) => ({ ...other, position: BigInt(i), revision: i }));
        const auditor = audit(renumbered, { allowsUnpaidCredits: true });
        auditor.finish();
        expect(auditor.findings.length).toBeGreaterThan(0);
      }),
    );
  });
});

// top-ups -----------------------------------------------------------------------------------------------------------

const payable = fc.record({ backend: fc.constant('lnd'), id: fc.constantFrom('p1', 'p2', 'p3') });
const market = fc.option(fc.constantFrom('0.5', '1', '2.5'));
const confirmations = fc.constantFrom(0, 1, 6, 'pending' as const, 'final' as const, 'lost' as const);
const units = fc.constantFrom(1_000n, 500_000n, 1_000_000n, 1_000_001n, 3_333_333n);
/** Fees or reversals of a payment in halves of its units. Payment backends report each id once. */
const adjustments = (id: string) =>
  fc
    .uniqueArray(fc.constantFrom(-1n, -2n, 1n, 2n), { maxLength: 2 })
    .map((parts) => parts.map((part) => ({ part, id: `${id}${part}` })));

const paymentReport = fc.record({
  topup: fc.constantFrom('t1', 't2', 't3'),
  payment: payable,
  confirmations,
  units,
  market,
  reversals: adjustments('r'),
  fees: adjustments('f'),
  receivedAt: at,
  at,
});

type Report = typeof paymentReport extends fc.Arbitrary<infer Value> ? Value : never;

/** Claims a final payment as the workflow does, then records it. */
function report(history: DecidedHistory, { topup, payment, units, reversals, fees, market, ...rest }: Report): void {
  const isFinal = rest.confirmations === 'final' || (typeof rest.confirmations === 'number' && rest.confirmations >= 1);
  const claimant = `topup-${topup}`;
  const key = `${payment.backend}/${payment.id}`;
  if (isFinal && history.read(claimant))
    history.run(key, 'payment', { type: 'ClaimPayment', data: { payment, claimant, at: rest.at } });
  const isClaimed = history.read<{ owner?: string } | undefined>(`payment-${key}`)?.owner === claimant;
  const toAdjustment = ({ id, part }: { id: string; part: bigint }) => {
    return { id: `${id} of ${topup} ${payment.id}`, units: (units * part) / 2n, why: 'so' };
  };
  const value = market === null ? undefined : (parseUsd(market) * units) / 1_000_000n;
  const data = {
    ...rest,
    payment,
    units,
    isClaimed,
    maxAmount: parseUsd('2'),
    reversals: reversals.map(toAdjustment),
    fees: fees.map(toAdjustment),
    ...(value === undefined
      ? {}
      : { market: { rate: { value: '1', source: 'kraken', at: rest.at }, amount: value as PicoUsd } }),
  };
  try {
    history.run(topup, 'topup', { type: 'RecordPayment', data });
  } catch (error) {
    // The payment waits for an exchange rate. The claim stays.
    if (!String(error).includes('without a rate')) throw error;
  }
}

type TopupAction = (history: DecidedHistory) => void;

const topupAction: fc.Arbitrary<TopupAction> = fc.oneof(
  {
    weight: 8,
    arbitrary: paymentReport.map(
      (data): TopupAction =>
        (history) =>
          report(history, data),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({ topup: fc.constantFrom('t1', 't2', 't3'), at }).map(
      ({ topup, at }): TopupAction =>
        (history) =>
          history.creditTopup(topup, at),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ topup: fc.constantFrom('t1', 't2'), payment: payable, isRefund: fc.boolean(), at }).map(
      ({ topup, payment, isRefund, at }): TopupAction =>
        (history) => {
          const excess = isRefund
            ? ({ type: 'RefundExcess', data: { payment, why: 'sent back', at } } as const)
            : ({ type: 'CreditExcess', data: { payment, at } } as const);
          history.run(topup, 'topup', excess);
        },
    ),
  },
);

function openAccount(history: DecidedHistory): void {
  history.run('a', 'account', { type: 'OpenAccount', data: { at: toInstant(0) } });
}

const topupHistory = fc.array(topupAction, { maxLength: 40 }).map((actions) => {
  const history = new DecidedHistory();
  openAccount(history);
  for (const [i, kind] of (['bolt11', 'address', 'page'] as const).entries()) {
    const topupId = `t${i + 1}`;
    const times = { expiresAt: toInstant(4), at: toInstant(0) };
    const allowed = { accountId: 'a', topupId, maxOpenInvoices: 3, ...times };
    history.run('a', 'invoices', { type: 'AllowInvoice', data: allowed });
    const destination = { kind, value: 'x' };
    const invoice = createIssuedInvoice({ reference: topupId, confirmations: 1, destination, ...times });
    history.run(topupId, 'topup', { type: 'IssueInvoice', data: invoice });
  }
  for (const action of actions) action(history);
  for (const topup of ['t1', 't2', 't3']) history.creditTopup(topup, toInstant(9));
  return history;
});

/** A payment that is claimed and waits for an exchange rate is not received. */
const WAITING = 'the owner of a claimed payment receives it';

test('top-ups after random reports break no rule, and everything is credited at the end', () => {
  fc.assert(
    fc.property(topupHistory, ({ events }) => {
      const auditor = audit(events, { maxOpenInvoices: 3 });
      auditor.finish();
      expect(auditor.findings.filter(({ rule }) => rule !== WAITING)).toEqual([]);
      expectSameLedger(auditor, events);
    }),
    { numRuns: 300 },
  );
});

// challenges --------------------------------------------------------------------------------------------------------

const issued = createIssuedChallenge({
  expiresAt: toInstant(2),
  usableUntil: toInstant(24),
  at: toInstant(0),
});
const soon = fc.integer({ min: 0, max: 30 }).map(toInstant);
const challengeCommand: fc.Arbitrary<Extract<HistoryCommand, ['challenge', unknown]>[1]> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .record({ holdId, maxAmount: amount.map((part) => (part * 10n) as PicoUsd), isRetry: fc.boolean(), at: soon })
      .map((data) => ({
        type: 'ClaimChallenge' as const,
        data: { ...data, request: issued.request, query, owner: 'gateway-1', expiresAt: toInstant(24) },
      })),
  },
  {
    weight: 1,
    arbitrary: fc.record({ extra: fc.constantFrom(0n, 1_000n, 3_000n), at: soon }).map(({ extra, at }) => ({
      type: 'RecordChallengePayment' as const,
      data: { units: BigInt(issued.units) + extra, fees: [{ id: 'f', units: 10n, why: 'routing' }], at },
    })),
  },
  {
    weight: 1,
    arbitrary: soon.map((at) => ({ type: 'ForfeitChallenge' as const, data: { usableBefore: at, at } })),
  },
  { weight: 6, arbitrary: holdCommand },
);

const challengeHistory = fc
  .record({
    commands: fc.array(challengeCommand, { minLength: 10, maxLength: 60 }),
    picks: fc.array(fc.nat(), { maxLength: 2 }),
    rest: fc.array(challengeCommand, { maxLength: 10 }),
    end: soon,
  })
  .map(({ commands, picks, rest, end }) => {
    const history = new DecidedHistory();
    const payment = { backend: issued.backend, id: issued.paymentHash };
    history.run('c', 'challenge', { type: 'IssueChallenge', data: issued });
    const claim = { payment, claimant: 'challenge-c', at: toInstant(0) };
    history.run(`${payment.backend}/${payment.id}`, 'payment', { type: 'ClaimPayment', data: claim });
    for (const command of commands) history.run('c', 'challenge', command);
    reverseCharges(history, picks, end);
    for (const command of rest) history.run('c', 'challenge', command);
    return history;
  });

test('a challenge after random commands breaks no rule, and has the balance that the domain knows', () => {
  fc.assert(
    fc.property(challengeHistory, (history) => {
      const auditor = audit(history.events);
      expect(auditor.findings).toEqual([]);
      expectSameLedger(auditor, history.events);
      expect(auditor.getChallenge('c')?.available).toBe(history.read<ChallengeState>('challenge-c').available);
    }),
  );
});

// automatic top-ups -------------------------------------------------------------------------------------------------

const LIMITS = { attempts: 6, amount: parseUsd('60') };
const minute = fc.integer({ min: 1, max: 40 });

/** Commands with a time since the previous one, as the workflow sends them: they fit the open attempt or the next. */
const autoTopupAction = fc.record({
  kind: fc.constantFrom(
    ...(['connect', 'disconnect', 'begin', 'begin', 'invoice', 'invoice', 'request', 'request', 'request'] as const),
    ...(['sent', 'unsent', 'unneeded', 'unknown', 'respond', 'respond', 'end', 'fail', 'drop'] as const),
  ),
  elapsed: fc.oneof(
    fc.integer({ min: 0, max: 60 }),
    minute.map((minutes) => minutes * 60),
  ),
  token: fc.integer({ min: 1, max: 3 }),
  wallet: fc.constantFrom('w1', 'w2'),
  code: fc.constantFrom('PAID', 'PAYMENT_FAILED', 'INSUFFICIENT_BALANCE', 'QUOTA_EXCEEDED'),
  request: fc.integer({ min: 1, max: 4 }),
});
type AutoTopupAction = typeof autoTopupAction extends fc.Arbitrary<infer Value> ? Value : never;

function toAutoTopupCommand(
  { kind, token, wallet, code, request }: AutoTopupAction,
  state: AutoTopupState | undefined,
  at: string,
): Extract<HistoryCommand, ['autotopup', unknown]>[1] {
  const attempt = state?.attempt?.number ?? (state?.attempts ?? 0) + 1;
  const last = state?.attempt?.requests ?? 0;
  const later = (minutes: number) => new Date(Date.parse(at) + minutes * 60_000).toISOString();
  const end = (isSent: boolean, isUnneeded = false) => {
    const result = isSent ? { isSent } : { isSent, reason: 'so', isUnneeded };
    return { type: 'EndRequest', data: { attempt, request: last, outcome: { isKnown: true, result }, at } } as const;
  };
  switch (kind) {
    case 'connect': {
      const address = { pubkey: wallet, relays: [], encryption: 'nip44_v2' } as const;
      const amounts = { threshold: parseUsd('10').toString(), amount: parseUsd('12').toString() };
      return { type: 'ConnectWallet', data: { wallet: address, secret: { key: '', box: '' }, ...amounts, at } };
    }
    case 'disconnect':
      return { type: 'DisconnectWallet', data: { at } };
    case 'begin': {
      const data = { attempt, topupId: `t${attempt}`, balance: parseUsd('9'), limits: LIMITS, at };
      return { type: 'BeginAutoTopup', data };
    }
    case 'invoice':
      return { type: 'RecordInvoice', data: { attempt, invoice: 'lnbc', expiresAt: later(15), at } };
    case 'request':
      return { type: 'BeginRequest', data: { attempt, request: last + 1, token, at } };
    case 'sent':
      return end(true);
    case 'unsent':
    case 'unneeded':
      // A request that has a response was sent.
      return end(!state?.attempt?.unanswered.includes(last), kind === 'unneeded');
    case 'unknown':
      return {
        type: 'EndRequest',
        data: { attempt, request: last, outcome: { isKnown: false, reason: 'so' }, at },
      };
    case 'respond':
      return { type: 'RecordAnswer', data: { attempt, request, code, at } };
    default: {
      const { invoice } = state?.attempt ?? {};
      const outcome =
        kind === 'drop' ? 'dropped' : !invoice ? 'failed' : at >= invoice.expiresAt ? 'expired' : 'dropped';
      return { type: 'EndAutoTopup', data: { attempt, outcome, at } };
    }
  }
}

test('an automatic top-up after random commands breaks no rule', () => {
  const actions = fc.array(autoTopupAction, { minLength: 20, maxLength: 100 });
  fc.assert(
    fc.property(actions, (list) => {
      const history = new DecidedHistory();
      let now = START;
      const connection = { kind: 'connect', elapsed: 0, token: 1, wallet: 'w1', code: 'PAID', request: 1 } as const;
      for (const action of [connection, ...list]) {
        now += action.elapsed * 1_000;
        const state = history.read<AutoTopupState | undefined>('autotopup-a');
        history.run('a', 'autotopup', toAutoTopupCommand(action, state, new Date(now).toISOString()));
      }
      const auditor = audit(history.events, { autoTopupLimits: LIMITS });
      expect(auditor.findings).toEqual([]);
      expect(auditor.getAttempts('a').length).toBe(history.read<AutoTopupState>('autotopup-a').attempts);
    }),
  );
});

// videos ------------------------------------------------------------------------------------------------------------

const endpoint = (creditor: string) => ({
  of: 'v',
  provider: creditor,
  creditor,
  model: 'theirs',
  usage: { videoSecond: 5 },
  prices: [
    { unit: 'videoSecond', per: 1, cost: parseUsd('0.07').toString(), price: parseUsd('0.0805').toString() },
  ] as const,
});

const videoAction = fc.record({
  kind: fc.constantFrom(
    ...(['keep', 'keep', 'begin', 'begin', 'accept', 'reject', 'unavailable', 'unknown', 'made', 'made'] as const),
    ...(['fetch', 'store', 'fail', 'time out', 'settle', 'release', 'close cost', 'abandon'] as const),
  ),
  elapsed: fc.integer({ min: 0, max: 15 }),
  token: fc.integer({ min: 1, max: 2 }),
  invoiced: fc.constantFrom('no' as const, 'yes' as const, 'perhaps' as const),
});
type VideoAction = typeof videoAction extends fc.Arbitrary<infer Value> ? Value : never;

/** Runs a step as the workflow of videos does: the command for the payer first, then the record of it. */
function runVideoAction(history: DecidedHistory, { kind, token, invoiced }: VideoAction, at: string): void {
  const state = history.read<VideoState>('video-v');
  const { holds } = history.read<AccountState>('account-a');
  const submission = state.submission?.number ?? 0;
  const run = (command: Extract<HistoryCommand, ['video', unknown]>[1]) => history.run('v', 'video', command);
  const runPayer = (command: Extract<HistoryCommand, ['account', unknown]>[1]) => history.run('a', 'account', command);
  const end = (outcome: EffectOutcome) => run({ type: 'EndSubmission', data: { submission, outcome, at } });
  const refuse = (isRejected: boolean) => {
    const result = { isAccepted: false, isRejected, isRetryable: true, code: 'rate_limited', reason: 'so' };
    end({ isKnown: true, result });
  };
  switch (kind) {
    case 'keep':
      if (state.phase !== 'requested') return;
      runPayer({ type: 'KeepHold', data: { holdId: 'h', owner: 'video-v', at } });
      if (holds.has('h')) run({ type: 'RecordHeld', data: { at } });
      else run({ type: 'FailVideo', data: { phase: 'requested', errorCode: 'hold_ended', message: 'so', at } });
      return;
    case 'begin':
      run({ type: 'BeginSubmission', data: { submission: submission + 1, token, at } });
      return;
    case 'accept':
      end({ isKnown: true, result: { isAccepted: true, reference: 'r', vendorId: 'i', hooked: false } });
      return;
    case 'reject':
      refuse(true);
      return;
    case 'unavailable':
      refuse(false);
      return;
    case 'unknown':
      end({ isKnown: false, reason: 'so' });
      return;
    case 'made':
      run({ type: 'RecordMade', data: { at } });
      return;
    case 'fetch':
      run({ type: 'RecordFetchFailure', data: { fetch: state.fetches + 1, final: true, why: 'so', at } });
      return;
    case 'store':
      run({ type: 'RecordStored', data: { mediaType: 'video/mp4', size: 1, at } });
      return;
    case 'fail':
      run({ type: 'FailVideo', data: { phase: state.phase, errorCode: 'e', message: 'm', invoiced, at } });
      return;
    case 'time out':
      run({ type: 'TimeOutVideo', data: { at } });
      return;
    case 'settle':
      if (!state.stored) return;
      runPayer({ type: 'SettleHold', data: { holdId: 'h', charge: state.stored.charge, at } });
      run({ type: 'RecordSettled', data: { at } });
      return;
    case 'release': {
      if (!state.failure) return;
      const { errorCode, message: reason, absorbed } = state.failure;
      const cost = absorbed ? { absorbed } : {};
      runPayer({ type: 'ReleaseHold', data: { holdId: 'h', errorCode, reason, attempts: [], ...cost, at } });
      run({ type: 'RecordReleased', data: { at } });
      return;
    }
    case 'close cost':
      run({ type: 'CloseVideoCost', data: { cost: parseUsd('0.35'), at } });
      return;
    default:
      runPayer({ type: 'AbandonHolds', data: { owner: 'gateway-1', before: at, at } });
      return;
  }
}

test('a video after random commands breaks no rule', () => {
  const actions = fc.array(videoAction, { minLength: 10, maxLength: 60 });
  const hold = { holdId: 'h', payer: 'account-a', amount: parseUsd('0.4025').toString() };
  const videoQuery = { ...query, type: 'video_generation' } as const;
  fc.assert(
    fc.property(actions, fc.integer({ min: 20, max: 200 }), (list, deadline) => {
      const history = new DecidedHistory();
      const toTime = (seconds: number) => new Date(START + seconds * 1_000).toISOString();
      const start = { at: toTime(0) };
      openAccount(history);
      const credit = { creditId: 'c', method: 'card', amount: parseUsd('1'), bonus: parseUsd('0'), ...start };
      history.run('a', 'account', { type: 'AddCredit', data: credit });
      const amounts = { minAmount: parseUsd('0.4025'), maxAmount: parseUsd('0.4025') };
      const held = { holdId: 'h', keyId: null, owner: 'gateway-1', query: videoQuery, expiresAt: toTime(900) };
      history.run('a', 'account', { type: 'HoldFunds', data: { ...held, ...amounts, ...start } });
      const order = { accountId: 'a', keyId: null, terms: {}, priceList: 'p', result: 'gen', query: videoQuery, hold };
      const request = { file: 'req', sha256: 'ab' };
      const endpoints = [endpoint('one'), endpoint('other')];
      const data = { ...order, deadline: toTime(deadline), endpoints, request, ...start };
      history.run('v', 'video', { type: 'RequestVideo', data });
      let seconds = 0;
      for (const action of list) {
        seconds += action.elapsed;
        runVideoAction(history, action, toTime(seconds));
      }
      const auditor = audit(history.events, { allowsUnpaidCredits: true });
      expect(auditor.findings).toEqual([]);
      expectSameLedger(auditor, history.events);
    }),
  );
});
