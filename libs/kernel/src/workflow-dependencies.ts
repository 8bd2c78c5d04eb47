/** What a workflow runs with: where its steps and queries go, and what stores its schedule and checkpoint. */
import type { Cause } from './cause.ts';
import type { CommandRunner } from './command-runner.ts';
import type { Message } from './message.ts';
import type { CheckpointStore, EventReader, Runtime } from './ports.ts';
import type { WorkflowSchedule, WorkflowStep } from './workflow.ts';

export type StepOfKind<S extends WorkflowStep, Kind extends S['step']> = Extract<S, { readonly step: Kind }>;

/** A question of a stream. */
export interface PendingQuery<S extends WorkflowStep> {
  readonly id: string;
  /** Something has happened to it: it is not only looked at again. */
  readonly isUrgent: boolean;
  readonly query: StepOfKind<S, 'query'>['query'];
}

/** Where the steps of a workflow go. */
export interface WorkflowDependencies<Command extends Message, Event extends Message, S extends WorkflowStep> {
  readonly eventReader: Pick<EventReader, 'read' | 'subscribe'>;
  /** The write path of its own streams. */
  readonly runner: CommandRunner<Command, Event>;
  send(step: StepOfKind<S, 'send'>, id: string, cause: Cause): Promise<void>;
  /** Asks together. @returns for each, in order, the commands for its own stream that follow from the answer */
  query(queries: readonly PendingQuery<S>[]): readonly Promise<readonly Command[]>[];
  /** @returns the answer of the world, also where it is a refusal; throws when it is not known what came of it */
  perform(step: StepOfKind<S, 'effect'>, id: string, signal: AbortSignal): Promise<unknown>;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  /** ISO 8601. */
  now(): string;
  readonly runtime: Pick<Runtime, 'sleep' | 'reportError'>;
}
