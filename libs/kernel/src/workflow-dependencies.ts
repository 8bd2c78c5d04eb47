/** The dependencies of a workflow: what performs its steps, and what stores its schedule and checkpoint. */
import type { Cause } from './cause.ts';
import type { CommandRunner } from './command-runner.ts';
import type { Message } from './message.ts';
import type { CheckpointStore, EventReader, Runtime } from './ports.ts';
import type { WorkflowSchedule, WorkflowStep } from './workflow.ts';

export type StepOfKind<S extends WorkflowStep, Kind extends S['step']> = Extract<S, { readonly step: Kind }>;

/** A query and the stream that needs its result. */
export interface PendingQuery<S extends WorkflowStep> {
  readonly id: string;
  /** Whether the stream is urgent (`DueStream.ahead`); otherwise the query is a routine poll. */
  readonly isUrgent: boolean;
  readonly query: StepOfKind<S, 'query'>['query'];
}

export interface WorkflowDependencies<Command extends Message, Event extends Message, S extends WorkflowStep> {
  readonly eventReader: Pick<EventReader, 'read' | 'subscribe'>;
  /** The write path of the workflow's own streams. */
  readonly runner: CommandRunner<Command, Event>;
  send(step: StepOfKind<S, 'send'>, id: string, cause: Cause): Promise<void>;
  /** Runs queries together. @returns for every query, in order, the resulting commands for its own stream */
  query(queries: readonly PendingQuery<S>[]): readonly Promise<readonly Command[]>[];
  /**
   * Performs an effect. Returns the response of the external system, even if it is a rejection.
   * @throws any error if the outcome is unknown
   */
  perform(step: StepOfKind<S, 'effect'>, id: string, signal: AbortSignal): Promise<unknown>;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  /** ISO 8601. */
  now(): string;
  readonly runtime: Pick<Runtime, 'sleep' | 'reportError' | 'chance'>;
}
