/** Builds a history: decides commands and records their events in one order. */
import {
  type AccountCommand,
  type AccountNamed,
  type AccountState,
  type AutoTopupCommand,
  type AutoTopupState,
  accountDecider,
  accountNameDecider,
  autoTopupDecider,
  type ChallengeCommand,
  type ChallengeState,
  challengeDecider,
  type DomainEvent,
  type PriceListPublished,
  priceListDecider,
  type TopupCommand,
  type TopupState,
  topupDecider,
  type VideoCommand,
  type VideoState,
  videoDecider,
} from '#domain';
import { type Decider, fold, type Message, Rejection, type StoredEvent } from '#kernel';

export type HistoryEvent = StoredEvent<DomainEvent>;

/** Shortly before the end of a day. The ends of a week and of a month follow. */
const START_MS = Date.parse('2026-11-26T22:00:00.000Z');
export const OPERATOR = { name: 'alice', isVerified: false };
export const MINUTE_MS = 60_000;

/** All streams of a category. */
interface Streams<Command extends Message, State, Event extends Message> {
  readonly category: string;
  readonly decider: Decider<Command, State, Event>;
  readonly states: Map<string, State>;
}

/** Collects the events of a history. A rejected command adds none. */
export class HistoryBuilder {
  readonly events: HistoryEvent[] = [];
  readonly accounts = new Map<string, AccountState>();
  readonly topups = new Map<string, TopupState>();
  private readonly names = new Map<string, AccountNamed['data'] | null>();
  readonly autoTopups = new Map<string, AutoTopupState>();
  readonly videos = new Map<string, VideoState>();
  readonly challenges = new Map<string, ChallengeState>();
  /** Includes videos whose requests were rejected. */
  videosRequested = 0;
  /** Account numbers of the requested holds `h0`, `h1` and so on. */
  readonly holds: number[] = [];
  private now = START_MS;
  private readonly lists = new Map<string, PriceListPublished['data'] | null>();
  private readonly lengths = new Map<string, number>();

  /** Runs a step one millisecond after the previous one, so that no two steps have the same time. */
  apply(step: Step): void {
    this.now++;
    step(this);
  }

  advance(minutes: number): void {
    this.now += minutes * MINUTE_MS;
  }

  getInstant(inMs = 0): string {
    return new Date(this.now + inMs).toISOString();
  }

  runAccountCommand(accountNumber: number, command: AccountCommand): void {
    this.run(
      { category: 'account', decider: accountDecider, states: this.accounts },
      toAccountId(accountNumber),
      command,
    );
  }

  nameAccount(name: string, accountNumber: number): void {
    const data = { name, accountId: toAccountId(accountNumber), actor: OPERATOR, at: this.getInstant() };
    const command = { type: 'NameAccount', data } as const;
    this.run({ category: 'name', decider: accountNameDecider, states: this.names }, name, command);
  }

  runTopupCommand(id: string, command: TopupCommand): void {
    this.run({ category: 'topup', decider: topupDecider, states: this.topups }, id, command);
  }

  runAutoTopupCommand(accountNumber: number, command: AutoTopupCommand): void {
    this.run(
      { category: 'autotopup', decider: autoTopupDecider, states: this.autoTopups },
      toAccountId(accountNumber),
      command,
    );
  }

  runVideoCommand(id: string, command: VideoCommand): void {
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

  /** Records an event as a store would. Positions grow, with gaps. */
  private record(stream: string, event: DomainEvent): void {
    const index = this.events.length;
    const revision = this.lengths.get(stream) ?? 0;
    this.lengths.set(stream, revision + 1);
    const envelope = { id: `fact-${index}`, stream, revision, position: BigInt(index * 3 + (index % 2)) };
    this.events.push({ ...event, ...envelope, recordedAt: this.getInstant(7), metadata: {} } as HistoryEvent);
  }
}

export type Step = (history: HistoryBuilder) => void;

export function toAccountId(accountNumber: number): string {
  return `00000000-0000-4000-8000-${String(accountNumber).padStart(12, '0')}`;
}
