export { type Cause, followingFrom, metadataOf, startedBy } from './cause.ts';
export { createRunner, type Outcome, type Runner, type StateReader, streamName } from './command-runner.ts';
export { type Decider, fold, type StateCodec } from './decider.ts';
export { plainNumber, usdNumber, withNumbersAsText } from './json-number.ts';
export type { Message, Metadata, NewEvent, Recorded } from './message.ts';
export * as money from './money.ts';
export { formatUsd, type PicoUsd, picoUsd, usd, ZERO } from './money.ts';
export { PersistentMap } from './persistent-map.ts';
export {
  AppendTooLarge,
  type Batch,
  type CheckpointStore,
  type EventStore,
  type FactAppender,
  type FactReader,
  type Head,
  type Lease,
  NO_SNAPSHOTS,
  NO_STREAM,
  OutcomeUnknown,
  type Runtime,
  type Snapshot,
  type SnapshotStore,
  START,
  StoppedAtFact,
  StoreUnavailable,
  TurnLost,
  type UnreadFact,
} from './ports.ts';
export { pump, type Sink } from './pump.ts';
export { Rejection } from './rejection.ts';
export { outlasting } from './retry-while-unavailable.ts';
export { within } from './store-timeout.ts';
export { type WarmStream, WarmStreams } from './stream-state-cache.ts';
export {
  type DecodedEventStore,
  decoded,
  isKnown,
  type KnownFacts,
  latestVersion,
  UnknownFact,
  type Upcaster,
  unknownFact,
  upcast,
  versionOf,
} from './upcasting.ts';
export {
  type Ask,
  type Do,
  type Due,
  type DueTable,
  type EffectOutcome,
  type Effects,
  type Next,
  type PutOff,
  refuseLowerToken,
  type Send,
  type Step,
  TURN_LOST,
  type Workflow,
} from './workflow.ts';
export { type Asked, type RunningWorkflow, startWorkflow, type WorkflowPorts } from './workflow-runner.ts';
