/**
 * Histories that could have happened: every fact was decided, time only moves forward, and money came from top-ups.
 * For read models and other readers of facts.
 */
import fc from 'fast-check';
import {
  type AccountCommand,
  type AccountState,
  type AutoTopupCommand,
  type AutoTopupState,
  accountDecider,
  autoTopupDecider,
  type ChallengeCommand,
  type ChallengeState,
  challengeDecider,
  type DomainEvent,
  type PriceListPublished,
  priceListDecider,
  type ResetPeriod,
  type TopupCommand,
  type TopupState,
  topupDecider,
  type VideoCommand,
  type VideoState,
  videoDecider,
} from '#domain';
import {
  type Decider,
  fold,
  type Message,
  type NewEvent,
  type PicoUsd,
  parseUsd,
  Rejection,
  type StoredEvent,
} from '#kernel';
import { type AutoTopupAttempt, attempts, lifeOf } from './auto-topup-scenarios.ts';
import { challengeLives, liveChallenge } from './challenge-scenarios.ts';
import { chargeIn } from './history-charges.ts';
import { liveTopup } from './topup-scenarios.ts';
import { liveVideo, videoLives } from './video-scenarios.ts';

export type HistoryEvent = StoredEvent<DomainEvent>;

export interface History {
  readonly facts: readonly HistoryEvent[];
  /** What the deciders made of the facts, by id. */
  readonly accounts: ReadonlyMap<string, AccountState>;
  readonly topups: ReadonlyMap<string, TopupState>;
  readonly challenges: ReadonlyMap<string, ChallengeState>;
  /** The time of the last command. */
  readonly end: string;
}

const BEGIN = Date.parse('2026-11-26T22:00:00.000Z'); // soon a day ends, and then a week and a month
const MINUTE_MS = 60_000;
const EXPIRY_MS = 15 * MINUTE_MS;
const MSAT_PER_USD = 1_000_000n;

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;

/** All streams of a category. */
interface Streams<Command extends Message, State, Event extends Message> {
  readonly category: string;
  readonly decider: Decider<Command, State, Event>;
  readonly states: Map<string, State>;
}

/** The facts so far. A command that is rejected leaves none. */
class Story {
  readonly facts: HistoryEvent[] = [];
  readonly accounts = new Map<string, AccountState>();
  readonly topups = new Map<string, TopupState>();
  readonly autoTopups = new Map<string, AutoTopupState>();
  readonly videos = new Map<string, VideoState>();
  readonly challenges = new Map<string, ChallengeState>();
  /** Also those that came to nothing. */
  videosAsked = 0;
  /** Which account asked for each hold, `h0` and on. */
  readonly holds: number[] = [];
  private now = BEGIN;
  private readonly lists = new Map<string, PriceListPublished['data'] | null>();
  private readonly lengths = new Map<string, number>();

  /** Nothing happens at the same time as something else. */
  take(step: Step): void {
    this.now++;
    step(this);
  }

  advance(minutes: number): void {
    this.now += minutes * MINUTE_MS;
  }

  getInstant(inMs = 0): string {
    return new Date(this.now + inMs).toISOString();
  }

  account(nr: number, command: AccountCommand): void {
    this.run({ category: 'account', decider: accountDecider, states: this.accounts }, accountId(nr), command);
  }

  topup(id: string, command: TopupCommand): void {
    this.run({ category: 'topup', decider: topupDecider, states: this.topups }, id, command);
  }

  autoTopup(nr: number, command: AutoTopupCommand): void {
    this.run({ category: 'autotopup', decider: autoTopupDecider, states: this.autoTopups }, accountId(nr), command);
  }

  video(id: string, command: VideoCommand): void {
    this.run({ category: 'video', decider: videoDecider, states: this.videos }, id, command);
  }

  runChallengeCommand(id: string, command: ChallengeCommand): void {
    this.run({ category: 'challenge', decider: challengeDecider, states: this.challenges }, id, command);
  }

  publish(version: string): void {
    const data = { version, lines: [], at: this.getInstant() };
    const lists = { category: 'pricelist', decider: priceListDecider, states: this.lists };
    this.run(lists, version, { type: 'PublishPriceList', data });
  }

  private run<Command extends Message, State, Event extends DomainEvent>(
    { category, decider, states }: Streams<Command, State, Event>,
    id: string,
    command: Command,
  ): void {
    const state = states.get(id) ?? decider.getInitialState();
    try {
      const events = decider.decide(command, state);
      states.set(id, fold(decider, state, events));
      for (const event of events) this.record(`${category}-${id}`, event);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
    }
  }

  /** As a store would: positions grow, with gaps. */
  private record(stream: string, event: DomainEvent): void {
    const nr = this.facts.length;
    const revision = this.lengths.get(stream) ?? 0;
    this.lengths.set(stream, revision + 1);
    const place = { id: `fact-${nr}`, stream, revision, position: BigInt(nr * 3 + (nr % 2)) };
    this.facts.push({ ...event, ...place, recordedAt: this.getInstant(7), metadata: {} } as HistoryEvent);
  }
}

type Step = (story: Story) => void;

function accountId(nr: number): string {
  return `00000000-0000-4000-8000-${String(nr).padStart(12, '0')}`;
}

function key(keyId: string, limit: string | null, resetPeriod: ResetPeriod | null) {
  const secret = { key: '1', box: `box of ${keyId} "ä"\\` };
  return { keyId, name: keyId, hash: `hash of ${keyId}`, secret, limit, resetPeriod, expireAt: null };
}

function open(nr: number, limit: string | null, resetPeriod: ResetPeriod | null): Step {
  return (story) =>
    story.account(nr, {
      type: 'OpenAccount',
      data: { key: key(`k${nr}`, limit, resetPeriod), at: story.getInstant() },
    });
}

interface Ending {
  /** How many holds ago. It may have ended long since. */
  readonly back: number;
  readonly how: 'settle' | 'release' | 'absorb';
  readonly price: PicoUsd;
  readonly output: number;
}

function endHold(story: Story, { back, how, price, output }: Ending): void {
  const nr = story.holds.at(-back);
  if (nr === undefined) return;
  const hold = { holdId: `h${story.holds.length - back}`, at: story.getInstant() };
  const made = chargeIn(query.model, price, output);
  const failed = { ...hold, errorCode: 'upstream_error', reason: 'it failed', attempts: [] };
  if (how === 'settle') story.account(nr, { type: 'SettleHold', data: { ...hold, charge: made } });
  if (how === 'release') story.account(nr, { type: 'ReleaseHold', data: failed });
  if (how === 'absorb') story.account(nr, { type: 'ReleaseHold', data: { ...failed, absorbed: made } });
}

/** An automatic top-up up to some point, perhaps of an attempt that is open already. */
function autoTopUp(story: Story, nr: number, attempt: AutoTopupAttempt): void {
  const state = story.autoTopups.get(accountId(nr));
  for (const command of lifeOf(nr, state, attempt, { at: story.getInstant(), expiresAt: story.getInstant(EXPIRY_MS) }))
    story.autoTopup(nr, command);
}

const who = fc.nat(2);
/** Each account's first key, its second one, or none. */
const suffix = fc.constantFrom('', 'b');
const period = fc.constantFrom('daily', 'weekly', 'monthly', null);
const amount = fc.bigInt({ min: 0n, max: parseUsd('0.6') }).map((each) => each as PicoUsd);

const step = <T>(weight: number, about: fc.Arbitrary<T>, act: (story: Story, about: T) => void) => ({
  weight,
  arbitrary: about.map(
    (each): Step =>
      (story) =>
        act(story, each),
  ),
});

const steps = fc.oneof(
  step(3, fc.nat(20), (story, minutes) => story.advance(minutes)),
  step(1, fc.nat(4_000), (story, minutes) => story.advance(minutes)),
  step(9, fc.tuple(who, fc.option(suffix), amount, amount), (story, [nr, of, atLeast, more]) => {
    const part = { minAmount: atLeast, divisor: 4n };
    const amounts = {
      minAmount: atLeast,
      maxAmount: (atLeast + more) as PicoUsd,
      partialHold: part,
      expiresAt: story.getInstant(EXPIRY_MS),
    };
    const nth = story.holds.push(nr) - 1;
    const owned = nth % 4 === 0 ? {} : { owner: `gateway-${nth % 4}` };
    const hold = { holdId: `h${nth}`, keyId: of === null ? null : `k${nr}${of}`, ...owned, ...amounts };
    story.account(nr, { type: 'HoldFunds', data: { ...hold, query, at: story.getInstant() } });
  }),
  step(
    9,
    fc.record({
      back: fc.integer({ min: 1, max: 4 }),
      how: fc.constantFrom('settle', 'settle', 'release', 'absorb'),
      price: amount,
      output: fc.nat(9),
    }),
    endHold,
  ),
  step(3, fc.tuple(fc.integer({ min: 1, max: 4 }), amount, amount), (story, [back, atLeast, more]) => {
    const nr = story.holds.at(-back);
    if (nr === undefined) return;
    const data = {
      holdId: `h${story.holds.length - back}`,
      minAmount: atLeast,
      targetAmount: (atLeast + more) as PicoUsd,
      at: story.getInstant(),
    };
    story.account(nr, { type: 'ExtendHold', data });
  }),
  step(1, who, (story, nr) =>
    story.account(nr, { type: 'ExpireHolds', data: { before: story.getInstant(), at: story.getInstant() } }),
  ),
  step(1, fc.tuple(who, fc.constantFrom('gateway-1', 'gateway-2')), (story, [nr, owner]) =>
    story.account(nr, { type: 'AbandonHolds', data: { owner, at: story.getInstant() } }),
  ),
  step(
    2,
    fc.tuple(
      who,
      fc.record({
        msat: fc.option(fc.bigInt({ min: 1n, max: 2n * MSAT_PER_USD })),
        lateRate: fc.option(fc.constant('50000.00')),
        credited: fc.boolean(),
        reversed: fc.boolean(),
      }),
    ),
    (story, [nr, paid]) => liveTopup(story, { nr, accountId: accountId(nr) }, paid),
  ),
  step(1, fc.tuple(who, period), (story, [nr, resetPeriod]) => {
    const wanted = key(`k${nr}b`, parseUsd('2').toString(), resetPeriod);
    story.account(nr, { type: 'CreateKey', data: { key: wanted, at: story.getInstant() } });
  }),
  step(2, fc.tuple(who, suffix, period, fc.option(amount)), (story, [nr, of, resetPeriod, limit]) => {
    const changes = limit === null ? { resetPeriod } : { limit: limit.toString() };
    story.account(nr, { type: 'UpdateKey', data: { keyId: `k${nr}${of}`, changes, at: story.getInstant() } });
  }),
  step(1, who, (story, nr) =>
    story.account(nr, { type: 'RevokeKey', data: { keyId: `k${nr}b`, at: story.getInstant() } }),
  ),
  step(2, fc.tuple(who, attempts), (story, [nr, attempt]) => autoTopUp(story, nr, attempt)),
  step(2, fc.tuple(who, videoLives), (story, [nr, life]) =>
    liveVideo(story, { nr, accountId: accountId(nr), deadline: story.getInstant(EXPIRY_MS) }, life),
  ),
  step(2, challengeLives, liveChallenge),
  step(1, fc.constantFrom('v1', 'v2'), (story, version) => story.publish(version)),
);

const beginning: readonly Step[] = [
  (story) => story.publish('v1'),
  open(0, null, null),
  open(1, parseUsd('3').toString(), 'weekly'),
  open(2, parseUsd('5').toString(), 'daily'),
  ...[0, 1, 2, 2].map(
    (nr): Step =>
      (story) =>
        liveTopup(story, { nr, accountId: accountId(nr) }, { msat: 2n * MSAT_PER_USD, credited: true }),
  ),
];

/** Three accounts that begin with some money, and then up to so many steps of all kinds. */
export function histories(maxSteps: number): fc.Arbitrary<History> {
  return fc.array(steps, { minLength: maxSteps / 2, maxLength: maxSteps }).map((then) => {
    const story = new Story();
    for (const each of [...beginning, ...then]) story.take(each);
    const { facts, accounts, topups, challenges } = story;
    return { facts, accounts, topups, challenges, end: story.getInstant() };
  });
}

/** The same long history each time, for specs that need just one. */
export function someHistory(): History {
  return fc.sample(histories(300), { numRuns: 1, seed: 20_261_127 })[0] as History;
}

export function asNew({ id, type, data, metadata }: HistoryEvent): NewEvent {
  return { id, type, data, metadata };
}
