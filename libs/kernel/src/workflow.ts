/**
 * A durable process: a decider with a stream of its own, and what is to be done next, which follows from its state and
 * the time. Nothing else remembers it: steps are derived again after a crash, and timers are a table that the facts can
 * rebuild.
 */
import type { Decider } from './decider.ts';
import type { Message, StoredEvent } from './message.ts';
import { Rejection } from './rejection.ts';

/** A command that is sent to another stream, or the own. Its id makes it safe to repeat: nothing is recorded before. */
export interface SendStep<Command> {
  readonly step: 'send';
  readonly command: Command;
}

/** A question that changes nothing in the world. What is learned comes back as commands for the own stream, or none. */
export interface QueryStep<Query> {
  readonly step: 'query';
  readonly query: Query;
}

/**
 * Something that is done in the world and cannot be done twice. A fact that it is about to be done is appended before,
 * and another one with what came of it. Where that is not known the fact says so, and the workflow decides what next:
 * it is never done again by itself.
 */
export interface EffectStep<Effect> {
  readonly step: 'effect';
  /** Names this effect in its stream. Where the world takes an idempotency key, it is derived from this one. */
  readonly key: string;
  readonly effect: Effect;
}

export type WorkflowStep<Command = unknown, Query = unknown, Effect = unknown> =
  | SendStep<Command>
  | QueryStep<Query>
  | EffectStep<Effect>;

/** What a workflow wants at a moment. */
export interface WorkflowPlan<S extends WorkflowStep> {
  /** In this order, but questions: they are asked beside the others, together with those of other streams. */
  readonly steps: readonly S[];
  /** ISO 8601. When it wants to be woken up, where nothing happens before; undefined: then never. */
  readonly dueAt?: string | undefined;
}

/** The result of an effect: an answer, also where that is a refusal; or unknown. */
export type EffectOutcome<Result = unknown> =
  | { readonly isKnown: true; readonly result: Result }
  | { readonly isKnown: false; readonly reason: string };

export interface StartedEffect {
  readonly key: string;
  /** Of the turn in which it was started. */
  readonly token: number;
}

/** How a workflow records its effects. Its facts have names of their own; `assertFencingToken` is their fence. */
export interface Effects<Command extends Message, State, S extends WorkflowStep> {
  /** The effect that was started and whose result is not known yet. */
  findStarted(state: State): StartedEffect | undefined;
  /** The command whose fact says that it is about to be done, by the process whose turn has this token. */
  createStartCommand(step: Extract<S, { readonly step: 'effect' }>, token: number, at: string): Command;
  /** The command whose fact records the result. An answer may come after a fact that said "unknown". */
  createEndCommand(key: string, outcome: EffectOutcome, at: string): Command;
  /** So many that are being done occupy no place of other streams: where strangers say how long they take. */
  readonly maxDetached?: number;
}

export interface Workflow<Command extends Message, State, Event extends Message, S extends WorkflowStep> {
  /** Of its lease, its timers and its place in the facts. Another name starts over with all facts. */
  readonly name: string;
  /** Of its streams. */
  readonly category: string;
  readonly decider: Decider<Command, State, Event>;
  /** Pure: the same state and time give the same steps. */
  plan(state: State, now: string): WorkflowPlan<S>;
  /** Facts of its own streams that want nothing done at once: what they ask is asked with all that is only looked at again. */
  readonly lowPriorityEvents?: ReadonlySet<string>;
  /**
   * The id of the stream that a fact of another category concerns. It is looked at within a moment, where it waits for
   * something: streams that want nothing are not woken by what happens elsewhere.
   */
  findAffectedId?(event: StoredEvent): string | undefined;
  /** Where it has effects. */
  readonly effects?: Effects<Command, State, S>;
}

/**
 * For `decide`, before it lets an effect begin: a process that has lost its turn and does not know it must not.
 * @throws Rejection when a higher token was here
 */
export function assertFencingToken(highestToken: number, token: number): void {
  if (token < highestToken) throw new Rejection(LEASE_LOST, 'Another process has the turn');
}

export const LEASE_LOST = 'lease_lost';

/** When each stream of a workflow is looked at next. It can be rebuilt from the facts. */
export interface WorkflowSchedule {
  /** Streams that are due at `now`: those ahead first, and of these and the others those that have waited longest. */
  findDue(workflow: string, now: string, limit: number): Promise<readonly DueStream[]>;
  /** All streams that are or will be due. */
  listWaiting(workflow: string): Promise<readonly string[]>;
  /** Makes streams due at `at`, because something has happened there: ahead of all whose time has come, unless it has time. */
  wake(workflow: string, ids: readonly string[], at: string, isUrgent?: boolean): Promise<void>;
  /** Puts streams off or, where `at` is null, away, unless they were woken since they were found due. */
  reschedule(workflow: string, token: number, rows: readonly RescheduledStream[]): Promise<void>;
}

export interface DueStream {
  /** Of the stream, in its category. */
  readonly id: string;
  /** How often it was woken. */
  readonly woken: number;
  /** How often it has failed in a row. */
  readonly failures: number;
  /** It was woken, or has failed a few times since: it does not wait behind those that are only looked at again. */
  readonly ahead: boolean;
}

export interface RescheduledStream extends DueStream {
  /** ISO 8601. */
  readonly at: string | null;
}
