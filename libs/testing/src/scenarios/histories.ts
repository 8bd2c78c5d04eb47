/**
 * Generates possible histories for tests of read models and other readers of events: deciders decide every event, the
 * clock only moves forward, and the money of accounts comes from top-ups.
 */
import fc from 'fast-check';
import {
  type AccountState,
  type ChallengeState,
  type ResetPeriod,
  type TopupState,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { money, type NewEvent, type PicoUsd, parseUsd } from '#kernel';
import { type AutoTopupAttempt, autoTopupAttempts, createAttemptCommands } from './auto-topup-scenarios.ts';
import { challengeScenarios, runChallengeScenario } from './challenge-scenarios.ts';
import { HistoryBuilder, type HistoryEvent, MINUTE_MS, OPERATOR, type Step, toAccountId } from './history-builder.ts';
import { createTestCharge } from './history-charges.ts';
import { runTopupScenario } from './topup-scenarios.ts';
import { runVideoScenario, videoScenarios } from './video-scenarios.ts';

/** The maps contain the states of streams, by id. */
export interface History {
  readonly events: readonly HistoryEvent[];
  readonly accounts: ReadonlyMap<string, AccountState>;
  readonly topups: ReadonlyMap<string, TopupState>;
  readonly challenges: ReadonlyMap<string, ChallengeState>;
  /** The time after the last step. */
  readonly end: string;
}

const EXPIRY_MS = 15 * MINUTE_MS;
const MSAT_PER_USD = 1_000_000n;

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;

function createKey(keyId: string, limit: string | null, resetPeriod: ResetPeriod | null) {
  const secret = { key: '1', box: `box of ${keyId} "ä"\\` };
  return {
    keyId,
    name: keyId,
    hash: `hash of ${keyId}`,
    secret,
    limit,
    resetPeriod,
    expireAt: null,
    ...UNRESTRICTED_ACCESS,
  };
}

function openAccount(accountNumber: number, limit: string | null, resetPeriod: ResetPeriod | null): Step {
  return (history) =>
    history.runAccountCommand(accountNumber, {
      type: 'OpenAccount',
      data: { key: createKey(`k${accountNumber}`, limit, resetPeriod), at: history.getInstant() },
    });
}

interface HoldOutcome {
  /** Place of the hold from the end; 1 is the last. The hold may have ended, or been rejected. */
  readonly back: number;
  readonly resolution: 'settle' | 'release' | 'absorb';
  readonly price: PicoUsd;
  readonly output: number;
}

function endHold(history: HistoryBuilder, { back, resolution, price, output }: HoldOutcome): void {
  const accountNumber = history.holds.at(-back);
  if (accountNumber === undefined) return;
  const hold = { holdId: `h${history.holds.length - back}`, at: history.getInstant() };
  const charge = createTestCharge(query.model, price, output);
  const failed = { ...hold, errorCode: 'upstream_error', reason: 'it failed', attempts: [] };
  if (resolution === 'settle')
    history.runAccountCommand(accountNumber, { type: 'SettleHold', data: { ...hold, charge } });
  if (resolution === 'release') history.runAccountCommand(accountNumber, { type: 'ReleaseHold', data: failed });
  if (resolution === 'absorb')
    history.runAccountCommand(accountNumber, { type: 'ReleaseHold', data: { ...failed, absorbed: charge } });
}

/** Runs an automatic top-up up to some point. Continues the open attempt, if there is one. */
function runAutoTopup(history: HistoryBuilder, accountNumber: number, attempt: AutoTopupAttempt): void {
  const state = history.autoTopups.get(toAccountId(accountNumber));
  for (const command of createAttemptCommands(accountNumber, state, attempt, {
    at: history.getInstant(),
    expiresAt: history.getInstant(EXPIRY_MS),
  }))
    history.runAutoTopupCommand(accountNumber, command);
}

const accountNumbers = fc.nat(2);
/** Suffixes of the ids of an account's first and second key. */
const keySuffixes = fc.constantFrom('', 'b');
const resetPeriods = fc.constantFrom('daily', 'weekly', 'monthly', null);
const amount = fc.bigInt({ min: 0n, max: parseUsd('0.6') }).map((value) => value as PicoUsd);

const createStep = <T>(weight: number, input: fc.Arbitrary<T>, apply: (history: HistoryBuilder, input: T) => void) => ({
  weight,
  arbitrary: input.map(
    (value): Step =>
      (history) =>
        apply(history, value),
  ),
});

const steps = fc.oneof(
  createStep(3, fc.nat(20), (history, minutes) => history.advance(minutes)),
  createStep(1, fc.nat(4_000), (history, minutes) => history.advance(minutes)),
  createStep(
    9,
    fc.tuple(accountNumbers, fc.option(keySuffixes), amount, amount),
    (history, [accountNumber, keySuffix, minAmount, extra]) => {
      const part = { minAmount, divisor: 4n };
      const amounts = {
        minAmount,
        maxAmount: (minAmount + extra) as PicoUsd,
        partialHold: part,
        expiresAt: history.getInstant(EXPIRY_MS),
      };
      const nth = history.holds.push(accountNumber) - 1;
      const owned = nth % 4 === 0 ? {} : { owner: `gateway-${nth % 4}` };
      const hold = {
        holdId: `h${nth}`,
        keyId: keySuffix === null ? null : `k${accountNumber}${keySuffix}`,
        ...owned,
        ...amounts,
      };
      history.runAccountCommand(accountNumber, {
        type: 'HoldFunds',
        data: { ...hold, query, at: history.getInstant() },
      });
    },
  ),
  createStep(
    9,
    fc.record({
      back: fc.integer({ min: 1, max: 4 }),
      resolution: fc.constantFrom('settle', 'settle', 'release', 'absorb'),
      price: amount,
      output: fc.nat(9),
    }),
    endHold,
  ),
  createStep(3, fc.tuple(fc.integer({ min: 1, max: 4 }), amount, amount), (history, [back, minAmount, extra]) => {
    const accountNumber = history.holds.at(-back);
    if (accountNumber === undefined) return;
    const data = {
      holdId: `h${history.holds.length - back}`,
      minAmount,
      targetAmount: (minAmount + extra) as PicoUsd,
      knownAmount: minAmount,
      at: history.getInstant(),
    };
    history.runAccountCommand(accountNumber, { type: 'ExtendHold', data });
  }),
  createStep(1, accountNumbers, (history, accountNumber) =>
    history.runAccountCommand(accountNumber, {
      type: 'ExpireHolds',
      data: { before: history.getInstant(), at: history.getInstant() },
    }),
  ),
  createStep(
    1,
    fc.tuple(accountNumbers, fc.constantFrom('gateway-1', 'gateway-2')),
    (history, [accountNumber, owner]) =>
      history.runAccountCommand(accountNumber, {
        type: 'AbandonHolds',
        data: { owner, before: history.getInstant(), at: history.getInstant() },
      }),
  ),
  createStep(
    2,
    fc.tuple(
      accountNumbers,
      fc.record({
        msat: fc.option(fc.bigInt({ min: 1n, max: 2n * MSAT_PER_USD })),
        marketRate: fc.option(fc.constant('50000.00')),
        credited: fc.boolean(),
        reversed: fc.boolean(),
      }),
    ),
    (history, [accountNumber, paid]) =>
      runTopupScenario(history, { accountNumber, accountId: toAccountId(accountNumber) }, paid),
  ),
  createStep(1, fc.tuple(accountNumbers, resetPeriods), (history, [accountNumber, resetPeriod]) => {
    const newKey = createKey(`k${accountNumber}b`, parseUsd('2').toString(), resetPeriod);
    history.runAccountCommand(accountNumber, { type: 'CreateKey', data: { key: newKey, at: history.getInstant() } });
  }),
  createStep(
    2,
    fc.tuple(accountNumbers, keySuffixes, resetPeriods, fc.option(amount)),
    (history, [accountNumber, of, resetPeriod, limit]) => {
      const changes = limit === null ? { resetPeriod } : { limit: limit.toString() };
      history.runAccountCommand(accountNumber, {
        type: 'UpdateKey',
        data: { keyId: `k${accountNumber}${of}`, changes, at: history.getInstant() },
      });
    },
  ),
  createStep(1, accountNumbers, (history, accountNumber) =>
    history.runAccountCommand(accountNumber, {
      type: 'RevokeKey',
      data: { keyId: `k${accountNumber}b`, at: history.getInstant() },
    }),
  ),
  createStep(2, fc.tuple(accountNumbers, autoTopupAttempts), (history, [accountNumber, attempt]) =>
    runAutoTopup(history, accountNumber, attempt),
  ),
  createStep(2, fc.tuple(accountNumbers, videoScenarios), (history, [accountNumber, scenario]) =>
    runVideoScenario(
      history,
      { accountNumber, accountId: toAccountId(accountNumber), deadline: history.getInstant(EXPIRY_MS) },
      scenario,
    ),
  ),
  createStep(2, challengeScenarios, runChallengeScenario),
  createStep(1, fc.constantFrom('v1', 'v2'), (history, version) => history.publish(version)),
  createStep(1, accountNumbers, (history, accountNumber) =>
    history.nameAccount(`team-${accountNumber}`, accountNumber),
  ),
  createStep(
    2,
    fc.tuple(accountNumbers, fc.nat(4), amount, fc.boolean()),
    (history, [accountNumber, nth, value, isDebit]) =>
      history.runAccountCommand(accountNumber, {
        type: 'AdjustBalance',
        data: {
          adjustmentId: `a${nth}`,
          amount: isDebit ? money.negate(value) : value,
          reason: 'Budget',
          actor: OPERATOR,
          at: history.getInstant(),
        },
      }),
  ),
  createStep(
    1,
    fc.tuple(accountNumbers, keySuffixes, fc.option(fc.constant(['m', 'a/*'])), fc.boolean()),
    (history, [accountNumber, suffix, models, blocked]) =>
      history.runAccountCommand(accountNumber, {
        type: 'UpdateKey',
        data: {
          keyId: `k${accountNumber}${suffix}`,
          changes: { models, blocked, metadata: { team: `t${accountNumber}` } },
          at: history.getInstant(),
        },
      }),
  ),
);

const initialSteps: readonly Step[] = [
  (history) => history.publish('v1'),
  openAccount(0, null, null),
  openAccount(1, parseUsd('3').toString(), 'weekly'),
  openAccount(2, parseUsd('5').toString(), 'daily'),
  ...[0, 1, 2, 2].map(
    (accountNumber): Step =>
      (history) =>
        runTopupScenario(
          history,
          { accountNumber, accountId: toAccountId(accountNumber) },
          { msat: 2n * MSAT_PER_USD, credited: true },
        ),
  ),
];

/** Generates histories of three accounts with some money, with up to `maxSteps` further steps of all kinds. */
export function createHistoryArbitrary(maxSteps: number): fc.Arbitrary<History> {
  return fc.array(steps, { minLength: maxSteps / 2, maxLength: maxSteps }).map((then) => {
    const history = new HistoryBuilder();
    for (const nextStep of [...initialSteps, ...then]) history.apply(nextStep);
    const { events, accounts, topups, challenges } = history;
    return { events, accounts, topups, challenges, end: history.getInstant() };
  });
}

/** Returns the same long history every time, for specs that need only one. */
export function createSampleHistory(): History {
  return fc.sample(createHistoryArbitrary(300), { numRuns: 1, seed: 20_261_127 })[0] as History;
}

export function toNewEvent({ id, type, data, metadata }: HistoryEvent): NewEvent {
  return { id, type, data, metadata };
}
