export { limitEntries } from './cache-options.ts';
export { type Cause, createCauseFromEvent, createRootCause, toMetadata } from './cause.ts';
export { type CommandRunner, createCommandRunner, type StreamStateReader, toStreamName } from './command-runner.ts';
export { type Decider, fold, type StateCodec } from './decider.ts';
export { parseJsonWithNumbersAsText, toJsonNumber, toUsdJsonNumber } from './json-number.ts';
export { isJsonObject, type JsonObject } from './json-object.ts';
export type { Message, Metadata, NewEvent, StoredEvent } from './message.ts';
export * as money from './money.ts';
export { formatUsd, type PicoUsd, parseUsd, toPicoUsd, ZERO_USD } from './money.ts';
export {
  ActionRequiredError,
  AppendTooLargeError,
  BlockedByEventError,
  type CheckpointStore,
  type EventAppender,
  type EventBatch,
  type EventReader,
  type EventStore,
  type Lease,
  LeaseLostError,
  NO_SNAPSHOTS,
  NO_STREAM,
  type Randomness,
  type Runtime,
  type Snapshot,
  type SnapshotStore,
  START_POSITION,
  StoreUnavailableError,
  type StreamHead,
  type Timers,
  UnknownOutcomeError,
  type UnreadableEvent,
  type WaitOptions,
} from './ports.ts';
export { isProgrammingError } from './programming-error.ts';
export { type EventSink, pump } from './pump.ts';
export { Rejection } from './rejection.ts';
export {
  type Backoff,
  calculateBackoffMs,
  type FailedAttempt,
  type RetryOptions,
  retry,
  retryWhileUnavailable,
} from './retry.ts';
export { withStoreTimeout } from './store-timeout.ts';
export type { CommandOutcome } from './stream-command-queue.ts';
export { type CachedStream, StreamStateCache } from './stream-state-cache.ts';
export { withAbortTimeout, withTimeout } from './timeout.ts';
export {
  type DecodedEventStore,
  type EventSchema,
  getAppendVersion,
  getLatestVersion,
  isKnownEvent,
  throwUnknownEvent,
  toSchemaFingerprint,
  UnknownEventError,
  type Upcaster,
  upcast,
  withUpcasting,
} from './upcasting.ts';
export {
  assertFencingToken,
  type DueStream,
  type EffectOutcome,
  type EffectStep,
  type Effects,
  LEASE_LOST,
  type QueryStep,
  type RescheduledStream,
  type SendStep,
  type WakeOptions,
  type Workflow,
  type WorkflowPlan,
  type WorkflowSchedule,
  type WorkflowStep,
} from './workflow.ts';
export type { PendingQuery, WorkflowDependencies } from './workflow-dependencies.ts';
export { type RunningWorkflow, startWorkflow } from './workflow-runner.ts';
