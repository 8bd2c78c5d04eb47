import { describe, expect, test } from '@jest/globals';
import { type DomainEvent, EVENT_SCHEMA, type FundsHeld, type HoldSettled, UNRESTRICTED_ACCESS } from '#domain';
import { type EffectOutcome, type PicoUsd, parseUsd, type StoredEvent } from '#kernel';
import { createCharge, createIssuedChallenge, createIssuedInvoice } from '#testing';
import { Auditor, type AuditorOptions, type EndOfRun, RULES, type Rule } from './auditor.ts';
import { DecidedHistory, type HistoryCommand } from './decided-history.ts';

const START = Date.parse('2026-11-20T12:00:00.000Z');
const minute = (minutes: number) => new Date(START + minutes * 60_000).toISOString();
const usd = (amount: string) => parseUsd(amount).toString();
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const actor = { name: 'alice', isVerified: true };
const OPTIONS = { maxOpenInvoices: 3, autoTopupLimits: { attempts: 2, amount: parseUsd('24') } };

type Account = Extract<HistoryCommand, ['account', unknown]>[1];
type HoldTerms = Partial<Extract<Account, { type: 'HoldFunds' }>['data']>;

/** A history with every type of event, in which everything that began has ended. */
class BusyDay extends DecidedHistory {
  readonly account = (command: Account) => this.run('a', 'account', command);

  createKey(keyId: string, settings: object): void {
    const key = { keyId, name: keyId, hash: keyId, secret: { key: '', box: '' }, ...UNRESTRICTED_ACCESS };
    const data = { ...key, limit: usd('1'), resetPeriod: 'daily', expireAt: null, ...settings } as const;
    this.account({ type: 'CreateKey', data: { key: data, at: minute(0) } });
  }

  hold(holdId: string, at: number, terms: HoldTerms = {}): void {
    const amounts = { minAmount: parseUsd('0.1'), maxAmount: parseUsd('0.1') };
    const data = { holdId, keyId: 'k1', owner: 'g1', expiresAt: minute(at + 30), query, at: minute(at), ...amounts };
    this.account({ type: 'HoldFunds', data: { ...data, ...terms } });
  }

  settle(holdId: string, at: number, price = '0.04'): void {
    const charge = createCharge({ price: usd(price), cost: usd('0.03') });
    this.account({ type: 'SettleHold', data: { holdId, charge, at: minute(at) } });
  }

  issueInvoice(topupId: string, at: number, terms: Parameters<typeof createIssuedInvoice>[0] = {}): void {
    const times = { expiresAt: minute(at + 15), at: minute(at) };
    const data = { accountId: 'a', topupId, maxOpenInvoices: 3, ...times };
    this.run('a', 'invoices', { type: 'AllowInvoice', data });
    const invoice = createIssuedInvoice({ reference: topupId, confirmations: 1, ...times, ...terms });
    this.run(topupId, 'topup', { type: 'IssueInvoice', data: invoice });
  }

  /** Records a payment as the workflow does: claims it if it is final, and credits it. */
  report(topup: string, id: string, at: number, details: object = {}): void {
    const payment = { backend: 'lnd', id };
    const claim = { payment, claimant: `topup-${topup}`, at: minute(at) };
    const report = { payment, units: 1_000_000n, confirmations: 1, isClaimed: true, maxAmount: parseUsd('2') };
    const times = { receivedAt: minute(at), at: minute(at) };
    const data = { ...report, ...times, ...details };
    if (data.confirmations === 1) this.run(`lnd/${id}`, 'payment', { type: 'ClaimPayment', data: claim });
    this.run(topup, 'topup', { type: 'RecordPayment', data });
    this.creditTopup(topup, minute(at));
  }
}

function runAccount(day: BusyDay): void {
  day.account({ type: 'OpenAccount', data: { at: minute(0) } });
  day.createKey('k1', {});
  day.createKey('k2', { models: ['m*'], expireAt: minute(600) });
  day.createKey('k3', {});
  day.account({ type: 'UpdateKey', data: { keyId: 'k3', changes: { name: 'k3 new' }, at: minute(0) } });
  day.account({ type: 'RevokeKey', data: { keyId: 'k3', at: minute(1) } });
  const adjust = (adjustmentId: string, amount: string, reverses?: string) => {
    const data = { adjustmentId, amount: parseUsd(amount), reason: 'so', actor, at: minute(1) };
    day.account({ type: 'AdjustBalance', data: reverses === undefined ? data : { ...data, reverses } });
  };
  adjust('adjusted', '5');
  adjust('debited', '-1');
  adjust('undone', '1', 'debited');
  day.hold('settled', 2, { keyId: 'k2' });
  day.settle('settled', 3);
  day.hold('extended', 4);
  const more = { minAmount: parseUsd('0.2'), targetAmount: parseUsd('0.2'), knownAmount: parseUsd('0.1') };
  day.account({ type: 'ExtendHold', data: { holdId: 'extended', ...more, at: minute(5) } });
  day.settle('extended', 6, '0.25');
  const settled = day.events.at(-1) as StoredEvent<HoldSettled>;
  day.account({ type: 'ReverseCharge', data: { settled: settled.data, at: minute(7) } });
  day.hold('released', 8, { keyId: null });
  const failure = { errorCode: 'upstream_error', reason: 'so', attempts: [], absorbed: createCharge({ cost: '7' }) };
  day.account({ type: 'ReleaseHold', data: { holdId: 'released', ...failure, at: minute(9) } });
  day.hold('expired', 10);
  day.account({ type: 'ExpireHolds', data: { before: minute(41), at: minute(41) } });
}

function runTopups(day: BusyDay): void {
  day.issueInvoice('t1', 50);
  const dropped = { accountId: 'a', topupId: 'dropped', maxOpenInvoices: 3, expiresAt: minute(65), at: minute(50) };
  day.run('a', 'invoices', { type: 'AllowInvoice', data: dropped });
  day.run('a', 'invoices', { type: 'DropInvoice', data: { topupId: 'dropped', at: minute(50) } });
  day.report('t1', 'p1', 51);
  const fees = [{ id: 'fee', units: 100n, why: 'routing' }];
  const reversals = [{ id: 'refund', units: -500_000n, why: 'refunded' }];
  day.report('t1', 'p1', 52, { fees, reversals });
  day.issueInvoice('t2', 53, { destination: { kind: 'address', value: 'x' } });
  day.report('t2', 'p2', 54, { confirmations: 0 });
  day.report('t2', 'p2', 55, { confirmations: 'lost' });
  const market = { rate: { value: '1', source: 'kraken', at: minute(56) }, amount: parseUsd('3.9') as PicoUsd };
  day.report('t2', 'p3', 56, { units: 4_000_000n, market });
  const payment = { backend: 'lnd', id: 'p3' };
  day.run('t2', 'topup', { type: 'CreditExcess', data: { payment, at: minute(57) } });
  day.creditTopup('t2', minute(57));
  day.report('t2', 'p1', 58, { confirmations: 0 });
  day.report('t2', 'p1', 58, { isClaimed: false });
  day.run('lnd/p1', 'payment', { type: 'CloseContests', data: { why: 'so', at: minute(59) } });
}

function runChallenge(day: BusyDay): void {
  const issued = createIssuedChallenge({
    paymentHash: 'paid',
    expiresAt: minute(75),
    usableUntil: minute(90),
    at: minute(60),
  });
  const { backend, paymentHash, request } = issued;
  const payment = { backend, id: paymentHash };
  const run = (command: Extract<HistoryCommand, ['challenge', unknown]>[1]) => day.run('c', 'challenge', command);
  run({ type: 'IssueChallenge', data: issued });
  const claim = { payment, claimant: 'challenge-c', at: minute(61) };
  day.run(`${backend}/${paymentHash}`, 'payment', { type: 'ClaimPayment', data: claim });
  const serve = (holdId: string, at: number, isRetry: boolean) => {
    const owned = { owner: 'g1', expiresAt: minute(at + 10), maxAmount: parseUsd('0.01'), isRetry };
    run({ type: 'ClaimChallenge', data: { holdId, request, query, ...owned, at: minute(at) } });
    const charge = createCharge({ price: usd('0.01') });
    run({ type: 'SettleHold', data: { holdId, charge, at: minute(at + 1) } });
  };
  serve('first', 62, false);
  const units = BigInt(issued.units) + 1_000n;
  const fees = [{ id: 'fee', units: 10n, why: 'routing' }];
  run({ type: 'RecordChallengePayment', data: { units, fees, at: minute(64) } });
  serve('second', 65, true);
  serve('third', 67, true);
  run({ type: 'ForfeitChallenge', data: { usableBefore: minute(95), at: minute(95) } });
}

function runAutoTopup(day: BusyDay): void {
  const run = (command: Extract<HistoryCommand, ['autotopup', unknown]>[1]) => day.run('a', 'autotopup', command);
  const limits = OPTIONS.autoTopupLimits;
  const wallet = { pubkey: 'w1', relays: [], encryption: 'nip44_v2' } as const;
  const amounts = { threshold: usd('10'), amount: usd('1') };
  run({ type: 'ConnectWallet', data: { wallet, secret: { key: '', box: '' }, ...amounts, at: minute(100) } });
  const begin = (attempt: number, at: number) => {
    const data = { attempt, topupId: `auto${attempt}`, balance: parseUsd('9'), limits, at: minute(at) };
    run({ type: 'BeginAutoTopup', data });
    day.issueInvoice(`auto${attempt}`, at);
    run({ type: 'RecordInvoice', data: { attempt, invoice: 'lnbc', expiresAt: minute(at + 15), at: minute(at) } });
  };
  const send = (request: number, at: number, outcome: EffectOutcome) => {
    run({ type: 'BeginRequest', data: { attempt: 1, request, token: request, at: minute(at) } });
    run({ type: 'EndRequest', data: { attempt: 1, request, outcome, at: minute(at) } });
  };
  begin(1, 101);
  send(1, 102, { isKnown: false, reason: 'so' });
  send(2, 103, { isKnown: true, result: { isSent: true } });
  run({ type: 'RecordAnswer', data: { attempt: 1, request: 2, code: 'PAID', at: minute(103) } });
  day.report('auto1', 'p4', 104);
  run({ type: 'EndAutoTopup', data: { attempt: 1, outcome: 'paid', at: minute(105) } });
  begin(2, 106);
  run({ type: 'EndAutoTopup', data: { attempt: 2, outcome: 'expired', at: minute(122) } });
  // The limits of the day are used up, so the automatic top-up pauses.
  const third = { attempt: 3, topupId: 'auto3', balance: parseUsd('9'), limits, at: minute(130) };
  run({ type: 'BeginAutoTopup', data: third });
  run({ type: 'DisconnectWallet', data: { at: minute(131) } });
}

const createEndpoint = (creditor: string) => ({
  of: 'v',
  provider: creditor,
  creditor,
  model: 'v',
  usage: { clip: 1 },
  prices: [{ unit: 'clip', per: 1, cost: usd('0.05'), price: usd('0.06') }] as const,
});

type RunVideo = (command: Extract<HistoryCommand, ['video', unknown]>[1]) => void;

/** Runs a video job whose submission to the first provider fails. @param finish runs the rest of the job */
function runVideo(day: BusyDay, id: string, start: number, finish: (run: RunVideo, at: string) => void): void {
  const holdId = `hold-${id}`;
  day.hold(holdId, start, { keyId: null });
  const run: RunVideo = (command) => day.run(id, 'video', command);
  const at = minute(start + 2);
  const hold = { holdId, payer: 'account-a', amount: usd('0.1') };
  const order = { accountId: 'a', keyId: null, terms: {}, priceList: 'v', result: 'gen', query, hold };
  const request = { file: 'req', sha256: 'ab' };
  const endpoints = [createEndpoint('one'), createEndpoint('other')];
  const data = { ...order, request, endpoints, deadline: minute(start + 20), at: minute(start) };
  run({ type: 'RequestVideo', data });
  day.account({ type: 'KeepHold', data: { holdId, owner: `video-${id}`, at: minute(start) } });
  run({ type: 'RecordHeld', data: { at } });
  const submit = (submission: number, result: object) => {
    run({ type: 'BeginSubmission', data: { submission, token: submission, at } });
    run({ type: 'EndSubmission', data: { submission, outcome: { isKnown: true, result }, at } });
  };
  submit(1, { isAccepted: false, isRejected: false, isRetryable: true, code: 'rate_limited', reason: 'so' });
  submit(2, { isAccepted: true, reference: 'r', vendorId: 'i', hooked: false });
  finish(run, at);
}

function runVideos(day: BusyDay): void {
  runVideo(day, 'stored', 140, (run, at) => {
    run({ type: 'RecordMade', data: { at } });
    run({ type: 'RecordFetchFailure', data: { fetch: 1, final: false, why: 'so', at } });
    run({ type: 'RecordStored', data: { mediaType: 'video/mp4', size: 1, at } });
    const charge = createCharge({
      of: 'v',
      provider: 'other',
      creditor: 'other',
      cost: usd('0.05'),
      price: usd('0.06'),
    });
    day.account({ type: 'SettleHold', data: { holdId: 'hold-stored', charge, at } });
    run({ type: 'RecordSettled', data: { at } });
  });
  const fail = (id: string, start: number, invoiced: 'yes' | 'perhaps') =>
    runVideo(day, id, start, (run, at) => {
      run({ type: 'FailVideo', data: { phase: 'submitted', errorCode: 'e', message: 'm', invoiced, at } });
      const failed = day.events.at(-1);
      const absorbed = failed?.type === 'VideoFailed' ? failed.data.absorbed : undefined;
      const failure = { errorCode: 'e', reason: 'm', attempts: [], ...(absorbed ? { absorbed } : {}) };
      day.account({ type: 'ReleaseHold', data: { holdId: `hold-${id}`, ...failure, at } });
      run({ type: 'RecordReleased', data: { at } });
      if (invoiced === 'perhaps') run({ type: 'CloseVideoCost', data: { cost: parseUsd('0.05'), at } });
    });
  fail('absorbed', 150, 'yes');
  fail('open', 160, 'perhaps');
}

function createDay(): readonly StoredEvent<DomainEvent>[] {
  const day = new BusyDay();
  day.append('pricelist-v', { type: 'PriceListPublished', data: { version: 'v', lines: [], at: minute(0) } });
  runAccount(day);
  day.append('name-alpha', { type: 'AccountNamed', data: { name: 'Alpha', accountId: 'a', actor, at: minute(45) } });
  const rejected = { accountId: 'a', keyId: null, requestId: 'r', query, errorCode: 'insufficient_balance' };
  day.append('refusals-a-2026-11-20', { type: 'RequestRefused', data: { ...rejected, at: minute(46) } });
  runTopups(day);
  runChallenge(day);
  runAutoTopup(day);
  runVideos(day);
  return day.events;
}

// mutations ---------------------------------------------------------------------------------------------------------

interface Draft {
  readonly stream: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

type Mutation = (events: readonly Draft[]) => readonly Draft[];
type Changes = Readonly<Record<string, unknown>>;

const DAY = createDay();
const DRAFTS = DAY as readonly Draft[];

/** Returns the index of the first event of a type with these fields. */
function findIndex(events: readonly Draft[], type: string, match: Changes): number {
  const fits = ({ data }: Draft) =>
    Object.entries(match).every(([field, value]) => JSON.stringify(data[field]) === JSON.stringify(value));
  const index = events.findIndex((event) => event.type === type && fits(event));
  if (index < 0) throw new Error(`no ${type} with ${JSON.stringify(match)}`);
  return index;
}

/** Returns an event with changed data. */
const change = (event: Draft, changes: Changes): Draft => ({ ...event, data: { ...event.data, ...changes } });

/** Changes the data of an event. */
const edit =
  (type: string, changes: Changes, match: Changes = {}): Mutation =>
  (events) => {
    const index = findIndex(events, type, match);
    return events.with(index, change(events[index] as Draft, changes));
  };

/** Changes the type or the stream of an event. */
const convert =
  (type: string, changes: Partial<Draft>, match: Changes = {}): Mutation =>
  (events) => {
    const index = findIndex(events, type, match);
    return events.with(index, { ...(events[index] as Draft), ...changes });
  };

const drop =
  (type: string, match: Changes = {}): Mutation =>
  (events) =>
    events.toSpliced(findIndex(events, type, match), 1);

/** Repeats an event directly after it, with these changes. */
const repeat =
  (type: string, changes: Changes = {}, match: Changes = {}): Mutation =>
  (events) => {
    const index = findIndex(events, type, match);
    return events.toSpliced(index + 1, 0, change(events[index] as Draft, changes));
  };

/** Appends an event at the end, with the data of the first event of the type and these changes. */
const append =
  (type: string, changes: Changes, match: Changes = {}): Mutation =>
  (events) => [...events, change(events[findIndex(events, type, match)] as Draft, changes)];

/** Inserts an event after the first one of a type. */
const insertAfter =
  (type: string, event: Draft, match: Changes = {}): Mutation =>
  (events) =>
    events.toSpliced(findIndex(events, type, match) + 1, 0, event);

/** Moves the first event of a type by this number of events. */
const move =
  (type: string, by: number): Mutation =>
  (events) => {
    const index = findIndex(events, type, {});
    return events.toSpliced(index, 1).toSpliced(index + by, 0, events[index] as Draft);
  };

const all =
  (...mutations: readonly Mutation[]): Mutation =>
  (events) =>
    mutations.reduce((mutated, mutate) => mutate(mutated), events);

/** Numbers events in their order. */
function toStored(events: readonly Draft[]): readonly StoredEvent[] {
  const lengths = new Map<string, number>();
  return events.map((event, i) => {
    const revision = lengths.get(event.stream) ?? 0;
    lengths.set(event.stream, revision + 1);
    return { ...event, id: `e${i}`, revision, position: BigInt(i), recordedAt: '', metadata: {} };
  });
}

function audit(events: readonly StoredEvent[], options: AuditorOptions = {}, end: EndOfRun = {}): Auditor {
  const auditor = new Auditor({ ...OPTIONS, maxFindings: 10_000, ...options });
  for (const event of events) auditor.apply(event);
  auditor.finish(end);
  return auditor;
}

const listRules = (events: readonly StoredEvent[], end: EndOfRun = {}): readonly Rule[] =>
  audit(events, {}, end).findings.map(({ rule }) => rule);

const createHold = (changes: Partial<FundsHeld['data']>): Draft => ({
  stream: 'account-a',
  type: 'FundsHeld',
  data: {
    holdId: 'new',
    keyId: 'k1',
    amount: '1',
    owner: 'g1',
    expiresAt: minute(400),
    query,
    at: minute(300),
    ...changes,
  },
});

const appendHold =
  (changes: Partial<FundsHeld['data']> = {}): Mutation =>
  (events) => [...events, createHold(changes)];

/** Adds attempts that the provider rejects, before the first response to the challenge. */
const addRejectedAttempts: Mutation = (events) => {
  const index = findIndex(events, 'FundsHeld', { holdId: 'first' });
  const held = events[index] as Draft;
  const attempts = ['r1', 'r2', 'r3'].flatMap((holdId): Draft[] => {
    const { amount, at } = held.data;
    const failure = { holdId, held: amount, heldAt: at, errorCode: 'invalid_request', reason: '', attempts: [] };
    return [change(held, { holdId }), { ...change(held, failure), type: 'HoldReleased' }];
  });
  return events.toSpliced(index, 0, ...attempts);
};

const ITEM = { of: 'm', provider: 'p', creditor: 'p', usage: {}, estimated: false };
/** Creates a charge of one call. @param total the price of the charge */
const toCharge = (price: string, cost: string, total = price) => ({
  items: [{ ...ITEM, price, cost }],
  price: total,
  cost,
  priceList: 'v',
  attempts: [],
});
const P1 = { backend: 'lnd', id: 'p1' };
const P3 = { backend: 'lnd', id: 'p3' };
const CREDITED: Draft = { stream: 'topup-t1', type: 'TopupCredited', data: { payment: P1, at: minute(51) } };
const THIRD_ATTEMPT: Draft = {
  stream: 'autotopup-a',
  type: 'AutoTopupBegun',
  data: { attempt: 3, topupId: 'auto3', amount: usd('1'), balance: usd('9'), at: minute(122) },
};

/** For each rule a change of the day that breaks it. */
const BREAKS: Partial<Record<Rule, Mutation>> = {
  'the types of events are known': convert('AccountNamed', { type: 'AccountPainted' }),
  'the types of events belong to the category of the stream': convert('AccountNamed', { stream: 'video-alpha' }),
  'instants are in UTC with milliseconds': edit('AccountNamed', { at: '2026-11-20T12:00:00Z' }),
  'a name is given once': repeat('AccountNamed'),
  'a charge names a published price list': edit('HoldSettled', { charge: { ...toCharge('1', '1'), priceList: 'w' } }),
  'a price list is published once': repeat('PriceListPublished'),
  'rejected requests are recorded once, at most 50 a day': repeat('RequestRefused'),
  'the postings of an event sum to zero': edit('HoldSettled', { charge: toCharge('1', '1', '2') }),
  'the data of an event can be read': edit('CreditAdded', { amount: 'much' }),
  'an attempt has an end': drop('AutoTopupEnded', { attempt: 2 }),
  'a video job has an end': drop('VideoSettled'),
  'the hold of a job ends with the job': drop('HoldSettled', { holdId: 'hold-stored' }),
  'a hold has an end': appendHold(),
  'money is neither created nor lost': edit('HoldSettled', { held: usd('0.2') }),
  'the held amount is the sum of the open holds': edit('HoldSettled', { held: usd('0.2') }),
  'only a reversed credit lowers the available amount below zero': appendHold({ amount: usd('100'), keyId: null }),
  'a hold is placed once': repeat('FundsHeld'),
  'a hold has no negative amount': appendHold({ amount: '-1' }),
  'a hold that has ended is not extended': append('HoldExtended', {}),
  'a hold has one key': edit('HoldSettled', { keyId: 'k1' }),
  'an extension adds its increase to the hold': edit('HoldExtended', { by: '1' }),
  'a hold that has expired is not extended': edit('HoldExtended', { at: minute(35) }),
  'a hold that has ended is not transferred to a job': append('HoldKept', {}),
  'a hold is transferred to one job': repeat('HoldKept', { owner: 'video-other' }),
  'a transferred hold had not expired': edit('HoldKept', { at: minute(171) }),
  'a hold ends once': repeat('HoldSettled'),
  'a hold ends with its open amount': edit('HoldReleased', { held: '1' }),
  'a hold ends with the time of its start': edit('HoldReleased', { heldAt: minute(7) }),
  'the hold of a job does not expire': convert('HoldReleased', { type: 'HoldExpired' }, { holdId: 'hold-open' }),
  'an uncharged hold ends with its own query': edit('HoldReleased', { query: { ...query, model: 'other' } }),
  'a charge is the price up to the held amount': edit('HoldSettled', { charged: usd('0.05') }),
  'only the charge of a released or expired hold is absorbed': append('ChargeAbsorbed', { holdId: 'settled' }),
  'a charge is absorbed once': repeat('ChargeAbsorbed'),
  'only the charge of a settled hold is reversed': append('ChargeReversed', { holdId: 'released' }),
  'a charge is reversed once': repeat('ChargeReversed'),
  'a reversed charge equals the charge': edit('ChargeReversed', { charged: '1' }),
  'a charge is the sum of its items': edit('ChargeAbsorbed', { charge: toCharge('0', '7', '1') }),
  'no item of a charge is negative': edit('ChargeAbsorbed', { charge: toCharge('-1', '7') }),
  'an account is opened once, before all else': repeat('AccountOpened'),
  'only an existing credit is reversed': edit('CreditReversed', { creditId: 'none' }),
  'a reversal is applied once': repeat('CreditReversed'),
  'an adjustment is made once': repeat('BalanceAdjusted'),
  'an adjustment has an amount': edit('BalanceAdjusted', { amount: '0' }),
  'an adjustment is reversed once and completely': append(
    'BalanceAdjusted',
    { adjustmentId: 'again' },
    { adjustmentId: 'undone' },
  ),
  'a key is created once': repeat('KeyCreated'),
  'a reset period has a limit': edit('KeyCreated', { limit: null }),
  'active keys have different names': edit('KeyUpdated', { name: 'k1' }),
  'only an active key is changed or revoked': repeat('KeyRevoked'),
  'a hold has an existing key': appendHold({ keyId: 'none' }),
  'no hold has a revoked key': appendHold({ keyId: 'k3' }),
  'no hold has a blocked key': edit('KeyCreated', { blocked: true }),
  'no hold has an expired key': edit('KeyCreated', { expireAt: minute(2) }, { keyId: 'k2' }),
  'a key permits the model of its hold': edit('KeyCreated', { models: ['n*', '*mm', 'M'] }, { keyId: 'k2' }),
  'charges and holds of a window stay within the limit of the key': appendHold({ amount: usd('1.01') }),
  'a hold ends with the time at which it was counted': edit('HoldSettled', { countedAt: minute(3) }),
  'a charge counts in the window of its hold': edit('HoldSettled', { countedIn: 'daily:2026-11-19' }),
  'only an allowed invoice is dropped': repeat('InvoiceDropped'),
  'a fee is charged once': repeat('PaymentFeeCharged'),
  'a received payment is credited': drop('CreditAdded'),
  'a credited payment is marked as credited': drop('TopupCredited'),
  'a credited excess is credited to the account': drop('CreditAdded', { creditId: 'excess:lnd/p3' }),
  'a reversed payment is reversed in the account': drop('CreditReversed'),
  'the owner of a claimed payment receives it': drop('ChallengePaid'),
  'the clearing account is what payment backends hold': drop('CreditAdded'),
  'a claim is in the stream of its payment': edit('PaymentClaimed', { payment: P3 }),
  'a payment is claimed once': repeat('PaymentClaimed', { claimant: 'topup-t2' }),
  'a claimed payment is contested by another': edit('PaymentContested', { claimant: 'topup-t1' }),
  'only an open contest is closed': repeat('ContestClosed'),
  'an invoice is allowed in the stream of its account': edit('InvoiceAllowed', { accountId: 'b' }),
  'an open invoice is allowed once': repeat('InvoiceAllowed'),
  'an account has at most the maximum of open invoices': all(
    repeat('InvoiceAllowed', { topupId: 'x' }),
    repeat('InvoiceAllowed', { topupId: 'y' }),
    repeat('InvoiceAllowed', { topupId: 'z' }),
  ),
  'a top-up has one invoice': repeat('InvoiceIssued'),
  'an invoice was allowed before it was issued': drop('InvoiceAllowed'),
  'a received payment is not seen again': append('PaymentSeen', { payment: P3 }),
  'only a seen payment is lost': drop('PaymentSeen'),
  'a payment of another owner is lost': edit('PaymentLost', { isContested: true }),
  'a payment is received once': repeat('PaymentReceived'),
  'a payment is claimed before it is received': move('PaymentClaimed', 1),
  'a payment has the account and method of its invoice': edit('PaymentReceived', { accountId: 'b' }),
  'a payment in time is worth at most the rate of its invoice': edit('PaymentReceived', { amount: usd('1.01') }),
  'a bonus is at most that of the invoice': edit('PaymentReceived', { bonus: usd('0.06') }),
  'a payment is credited before it is marked': move('TopupCredited', -1),
  'a payment is marked once': repeat('TopupCredited'),
  'only an open excess is credited': repeat('ExcessCredited'),
  'a reversal is recorded once': repeat('PaymentReversed'),
  'at most twice a payment is reversed, and no more is restored': edit('PaymentReversed', { units: '1', amount: '1' }),
  'the reversals of all units are the amounts of the payment': edit('PaymentReversed', { units: '-1000000' }),
  'a credit is added once': repeat('CreditAdded'),
  'a credit has a received payment': edit('CreditAdded', { creditId: 'lnd/none' }),
  'a credit equals its payment': edit('CreditAdded', { bonus: '0' }),
  'a reversed credit equals its reversed payment': edit('CreditReversed', { amount: '-1' }),
  'at most twice a credit is reversed, and no more is restored': all(
    edit('PaymentReversed', { amount: '1', bonus: '0' }),
    edit('CreditReversed', { amount: '1', bonus: '0' }),
  ),
  'a top-up begins with its invoice': drop('InvoiceIssued'),
  'only a received payment is credited, marked or reversed': insertAfter('InvoiceIssued', CREDITED),
  'the parts of a payment add up to it': edit('PaymentReceived', { units: '3999999' }, { payment: P3 }),
  'a challenge is issued once, before all else': repeat('ChallengeIssued'),
  'only a paid challenge is overpaid': drop('ChallengePaid'),
  'an overpayment has the rate of the challenge': edit('ChallengeOverpaid', { amount: '1' }),
  'a challenge is paid once': repeat('ChallengePaid'),
  'a challenge is paid at its price': edit('ChallengePaid', { price: usd('1') }),
  'the payment of a challenge is claimed before it counts': edit('ChallengeIssued', { paymentHash: 'other' }),
  'all that is left of a challenge is forfeited': edit('ChallengeForfeited', { amount: '1' }),
  'a usable challenge is not forfeited': edit('ChallengeForfeited', { at: minute(90) }),
  'a hold is within what was paid': edit('FundsHeld', { amount: usd('1') }, { holdId: 'first' }),
  'a challenge has no keys': edit('FundsHeld', { keyId: 'k1' }, { holdId: 'first' }),
  'a challenge serves one request at a time': drop('HoldSettled', { holdId: 'first' }),
  'a challenge is used before its end': edit('FundsHeld', { at: minute(91) }, { holdId: 'first' }),
  'the second response to a challenge is free': edit('FundsHeld', { amount: '1' }, { holdId: 'second' }),
  'a challenge serves at most three responses': append('FundsHeld', { holdId: 'fourth' }, { holdId: 'third' }),
  'the failed attempts of a challenge are limited': addRejectedAttempts,
  'only a connected wallet is disconnected': repeat('WalletDisconnected'),
  'only an open attempt continues or ends': repeat('AutoTopupEnded'),
  'an account has one open attempt': drop('AutoTopupEnded'),
  'attempts are counted': edit('AutoTopupBegun', { attempt: 3 }, { attempt: 2 }),
  'an attempt needs a wallet and a low balance': edit('AutoTopupBegun', { balance: usd('10') }),
  'an attempt has the amount of the wallet': edit('AutoTopupBegun', { amount: '1' }),
  'no attempt begins during a delay or a pause': insertAfter('AutoTopupEnded', THIRD_ATTEMPT, { attempt: 2 }),
  'attempts have different top-ups': edit('AutoTopupBegun', { topupId: 'auto1' }, { attempt: 2 }),
  'the attempts of a day are limited': append('AutoTopupBegun', { attempt: 3, topupId: 'auto3', at: minute(140) }),
  'an attempt has one invoice': repeat('AutoTopupInvoiced'),
  'requests to a wallet are counted': edit('WalletAsked', { request: 2 }),
  'no request starts while another one is being sent': drop('WalletRequestEnded'),
  'fencing tokens never decrease': edit('WalletAsked', { token: 9 }),
  'only the connected wallet is requested to pay': edit('WalletAsked', { wallet: 'w2' }),
  'only one wallet can pay an invoice': edit('WalletAsked', { wallet: 'w2' }, { request: 2 }),
  'an invoice is sent to a wallet in time': edit('AutoTopupInvoiced', { expiresAt: minute(102.5) }),
  'a request is repeated only after a delay': edit('WalletAsked', { at: minute(102) }, { request: 2 }),
  'a request ends once': repeat('WalletRequestEnded'),
  'a sent request has one response': repeat('WalletAnswered'),
  'a paid attempt is credited': drop('TopupCredited', { payment: { backend: 'lnd', id: 'p4' } }),
  'an unpaid attempt does not end while a request is being sent': all(
    drop('WalletRequestEnded', { request: 2 }),
    edit('AutoTopupEnded', { outcome: 'expired' }),
  ),
  'no attempt is dropped that a wallet may pay': edit('AutoTopupEnded', { outcome: 'dropped' }),
  'an attempt fails only without an invoice': edit('AutoTopupEnded', { outcome: 'failed' }),
  'an attempt expires after its invoice': edit('AutoTopupEnded', { outcome: 'expired' }),
  'a job is requested once, before all else': repeat('VideoRequested'),
  'a job owns its hold once': repeat('VideoHeld'),
  'an accepted video is made once': repeat('VideoMade'),
  'fetches of a video are counted': repeat('VideoFetchFailed'),
  'a job has the hold of its payer': edit('VideoRequested', {
    hold: { holdId: 'hold-stored', payer: 'account-a', amount: '1' },
  }),
  'a job has the account of its payer': edit('VideoRequested', { accountId: 'b' }),
  'a job is not submitted again while a provider may have it': edit('VideoSubmissionFailed', { outcome: 'unknown' }),
  'only a job with a hold is submitted': drop('VideoHeld'),
  'submissions are counted': edit('VideoSubmissionBegun', { submission: 2 }),
  'a job is submitted to its endpoints in order': edit('VideoSubmissionBegun', { endpoint: 2 }),
  'no job is submitted after its deadline': edit('VideoSubmissionBegun', { at: minute(160) }),
  'a submission ends once': repeat('VideoSubmitted'),
  'a job has one result': repeat('VideoStored'),
  'only an accepted job has a cost': drop('VideoSubmitted'),
  'a stored video was made': drop('VideoMade'),
  'a failed video is free': edit('VideoFailed', { absorbed: toCharge('1', '1') }),
  'a job ends its hold once': repeat('VideoSettled'),
  'a stored video is charged to its payer': edit('VideoSettled', { charged: '1' }),
  'the hold of a failed video ends without a charge': convert('VideoSettled', { type: 'VideoReleased' }),
  'the cost of a failed video is absorbed': edit('VideoFailed', { absorbed: toCharge('0', '1') }),
  'only an open cost is closed': edit('VideoCostClosed', { creditor: 'one' }),
  'a cost is closed once': repeat('VideoCostClosed'),
};

/** The rules that other tests of this file break. */
const OTHER_TESTS: readonly Rule[] = [
  'the revisions of a stream are contiguous',
  'positions increase',
  'ids of events are unique',
  'the hold of a dead process ends',
];

describe('a day with all types of events', () => {
  test('breaks no rule', () => {
    expect(audit(DAY).findings).toEqual([]);
    expect(new Set(DAY.map(({ type }) => type))).toEqual(new Set(Object.keys(EVENT_SCHEMA.upcasters)));
  });

  test.each(Object.entries(BREAKS))('breaks a rule after a change: %s', (rule, mutate) => {
    expect(listRules(toStored(mutate(DRAFTS)))).toContain(rule);
  });

  test('has a change for every rule', () => {
    expect([...Object.keys(BREAKS), ...OTHER_TESTS].toSorted()).toEqual([...RULES].toSorted());
  });
});

test('revisions, positions and ids are checked', () => {
  const [first, second, ...rest] = DAY as readonly StoredEvent[] as [StoredEvent, StoredEvent, ...StoredEvent[]];
  expect(listRules([first, { ...second, revision: 1 }, ...rest])).toContain('the revisions of a stream are contiguous');
  expect(listRules([first, { ...second, position: first.position }, ...rest])).toEqual(['positions increase']);
  expect(listRules([first, { ...second, id: first.id }, ...rest])).toEqual(['ids of events are unique']);
});

test('at the end of a run, a hold may be open until it expires, if its process is alive', () => {
  const withHold = toStored([...DRAFTS, createHold({})]);
  const gateways = (...ids: readonly string[]) => ({ aliveOwners: new Set(ids) });
  expect(listRules(withHold)).toEqual(['a hold has an end']);
  expect(listRules(withHold, { now: minute(350) })).toEqual([]);
  expect(listRules(withHold, { now: minute(350), ...gateways('g1') })).toEqual([]);
  expect(listRules(withHold, { now: minute(402) })).toEqual(['a hold has an end']);
  expect(listRules(withHold, { now: minute(402), ...gateways('g1') })).toEqual([]);
  expect(listRules(withHold, { now: minute(350), ...gateways('g2') })).toEqual(['the hold of a dead process ends']);
});

test('the auditor knows balances, holds, keys, top-ups, attempts and videos', () => {
  const auditor = audit(DAY);
  const account = auditor.getAccount('a');
  expect(account?.held).toBe(0n);
  expect(account?.available).toBe(-(auditor.getLedger().get('customer:available') ?? 0n));
  expect(account?.ends.get('settled')).toMatchObject({ resolution: 'settled', charged: parseUsd('0.04') });
  expect(account?.ends.get('extended')).toMatchObject({ price: parseUsd('0.25'), isReversed: true });
  expect(account?.keys.get('k2')).toMatchObject({ usedInAll: parseUsd('0.04'), window: 'daily:2026-11-20' });
  expect(auditor.getChallenge('c')).toMatchObject({ available: 0n, held: 0n });
  expect(auditor.getTopup('t1')).toMatchObject({ received: parseUsd('1.05'), isCredited: true });
  expect(auditor.getPaymentOwner('lnd/p1')).toBe('topup-t1');
  expect(auditor.getAttempts('a').map(({ outcome }) => outcome)).toEqual(['paid', 'expired']);
  expect(auditor.getVideo('stored')).toEqual({ isEnded: true, result: 'VideoStored' });
});
