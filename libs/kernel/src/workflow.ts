/**
 * A workflow is a durable process. It has a decider with streams of its own, and a plan: the next steps, derived from
 * the state of a stream and the time. Everything else can be derived: after a crash the steps are planned again, and
 * the table of timers can be rebuilt.
 */
import type { Decider } from './decider.ts';
import type { Message, StoredEvent } from './message.ts';
import { Rejection } from './rejection.ts';

/**
 * Sends a command to another stream or to the planned one. Ids in the command make it idempotent, so it is not recorded
 * first.
 */
export interface SendStep<Command> {
  readonly step: 'send';
  readonly command: Command;
}

/**
 * Reads from an external system and changes nothing there. The result is a list of commands for the stream whose plan
 * has the query.
 */
export interface QueryStep<Query> {
  readonly step: 'query';
  readonly query: Query;
}

/**
 * An external effect that must not happen twice. An event is appended before the effect starts, and another one with
 * its outcome. An unknown outcome is also recorded, and the workflow decides what to do. The runner never repeats an
 * effect.
 */
export interface EffectStep<Effect> {
  readonly step: 'effect';
  /** Identifies this effect in its stream. The external system's idempotency key, if it has one, is derived from it. */
  readonly key: string;
  readonly effect: Effect;
}

export type WorkflowStep<Command = unknown, Query = unknown, Effect = unknown> =
  | SendStep<Command>
  | QueryStep<Query>
  | EffectStep<Effect>;

/** The steps that a stream needs now, and when it is processed next. */
export interface WorkflowPlan<S extends WorkflowStep> {
  /** Performed in this order, except queries: they run concurrently, together with those of other streams. */
  readonly steps: readonly S[];
  /** ISO 8601. When the stream is processed next if nothing happens before; undefined: only when something happens. */
  readonly dueAt?: string | undefined;
}

/** The outcome of an effect. It is known if the external system responded, even if it rejected the request. */
export type EffectOutcome<Result = unknown> =
  | { readonly isKnown: true; readonly result: Result }
  | { readonly isKnown: false; readonly reason: string };

export interface StartedEffect {
  readonly key: string;
  /** Fencing token of the lease under which it was started. */
  readonly token: number;
}

/**
 * Records the effects of a workflow in its own events. The decider calls `assertFencingToken` before an effect starts.
 */
export interface Effects<Command extends Message, State, S extends WorkflowStep> {
  /** Returns the effect that was started and has no recorded outcome yet; undefined if there is none. */
  findStarted(state: State): StartedEffect | undefined;
  /** Creates the command that records that an effect starts now, under the lease with this fencing token. */
  createStartCommand(step: Extract<S, { readonly step: 'effect' }>, token: number, at: string): Command;
  /** Creates the command that records an outcome. A known outcome may follow one that was recorded as unknown. */
  createEndCommand(key: string, outcome: EffectOutcome, at: string): Command;
  /**
   * Maximum number of running effects that occupy no slot of the workflow runner (default 0). Set for effects whose
   * duration third parties control, so that they do not block other streams.
   */
  readonly maxDetached?: number;
}

export interface Workflow<Command extends Message, State, Event extends Message, S extends WorkflowStep> {
  /** Name of its lease, its timers and its checkpoint. With a new name it starts again from the first event. */
  readonly name: string;
  /** Category of its streams. */
  readonly category: string;
  readonly decider: Decider<Command, State, Event>;
  /** Pure: the same state and time give the same steps. */
  plan(state: State, now: string): WorkflowPlan<S>;
  /** Types of its own events that need no immediate processing: they make a stream due without priority over polls. */
  readonly lowPriorityEvents?: ReadonlySet<string>;
  /**
   * Returns the id of the stream that an event of another category concerns. That stream is made due if it has a timer.
   * Streams without a timer are not woken by events of other categories.
   */
  findAffectedId?(event: StoredEvent): string | undefined;
  /** Required if the plan contains effects. */
  readonly effects?: Effects<Command, State, S>;
}

/**
 * Called by `decide` before an effect starts. Stops a process that has lost its lease without noticing.
 * @throws Rejection if the stream has events of a lease with a higher token
 */
export function assertFencingToken(highestToken: number, token: number): void {
  if (token < highestToken) throw new Rejection(LEASE_LOST, 'Another process holds the lease');
}

export const LEASE_LOST = 'lease_lost';

/** When each stream of a workflow is processed next. Can be rebuilt from the events. */
export interface WorkflowSchedule {
  /** Returns the streams that are due at `now`: urgent ones first, and within each group the longest due first. */
  findDue(workflow: string, now: string, limit: number): Promise<readonly DueStream[]>;
  /** Returns the ids of all streams that are due now or later. */
  listWaiting(workflow: string): Promise<readonly string[]>;
  /** Makes streams due at `at`, because something has happened to them. */
  wake(workflow: string, ids: readonly string[], at: string, options?: WakeOptions): Promise<void>;
  /**
   * Sets when streams are due next; removes those with `at` null. Streams that were woken since `findDue` stay due, and
   * so do those that were woken or rescheduled under a higher fencing token: a process that has lost its lease without
   * noticing does not know why they are due.
   */
  reschedule(workflow: string, token: number, rows: readonly RescheduledStream[]): Promise<void>;
}

export interface WakeOptions {
  /** Urgent streams (the default) come before polls. */
  readonly isUrgent?: boolean;
  /** Fencing token of the lease under which the stream is woken. Omitted for a hint, which needs no lease. */
  readonly token?: number;
}

export interface DueStream {
  /** Id of the stream in its category, without the prefix. */
  readonly id: string;
  /**
   * Changes with each wake and never repeats, so that `reschedule` recognises a stream that was woken since `findDue`.
   */
  readonly woken: number;
  /** Failures in a row. */
  readonly failures: number;
  /**
   * Urgent: the stream was woken as urgent, or its last run failed after few other failures in a row. It is processed
   * before routine polls.
   */
  readonly ahead: boolean;
}

export interface RescheduledStream extends DueStream {
  /** ISO 8601; null: never, unless it is woken. */
  readonly at: string | null;
}
