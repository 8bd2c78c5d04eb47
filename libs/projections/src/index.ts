import { autoTopups } from './auto-topups.ts';
import { balances } from './balances.ts';
import { challenges } from './challenges.ts';
import { holds } from './holds.ts';
import { journal } from './journal.ts';
import { keys } from './keys.ts';
import { checkpointMigrations, type Projection } from './projection.ts';
import { queries } from './queries.ts';
import { rebuildMigrations } from './rebuild.ts';
import { skipMigrations } from './skipped-events.ts';
import { topups } from './topups.ts';
import { videoJobs } from './video-jobs.ts';
import { videos } from './videos.ts';

export { type AutoTopupView, foldAutoTopup, readAutoTopup } from './auto-topups.ts';
export { type Balance, readBalance } from './balances.ts';
export { type ChallengeView, findUnclaimedChallenges, readChallenges } from './challenges.ts';
export { CheckpointWriter } from './checkpoint-writer.ts';
export { FreshnessCheck } from './freshness-check.ts';
export {
  type HistoryFilter,
  type HistoryPage,
  type HistoryRecord,
  MAX_COUNTED_AFTER_PAGE,
  MAX_HISTORY_SCAN,
  PageOutOfRangeError,
  QueryHistory,
} from './history.ts';
export { findPayersByHoldOwner, findPayersWithOverdueHolds, type HoldOwnerRef } from './holds.ts';
export {
  findKeyOwner,
  type KeyOwner,
  type KeyPage,
  type KeyPageFilter,
  type KeyView,
  readAllKeys,
  readKey,
  readKeys,
} from './key-views.ts';
export { ProjectorLag } from './lag.ts';
export { type ProjectionPosition, ProjectionProgress } from './progress.ts';
export {
  createProjectionSink,
  type FoldProjection,
  type LogProjection,
  type ProjectedEvent,
  type Projection,
  READ_MODEL_CONNECTION_OPTIONS,
  type ReadModelRow,
  TEXT_TYPE_PARSERS,
} from './projection.ts';
export { listenForWakeups, ProjectorWakeup } from './projector-wakeup.ts';
export {
  COUNT_UNITS,
  countRefusedVideos,
  getCountUnits,
  type MedianPrice,
  readMedianPrices,
} from './queries.ts';
export { countQueries, findIncorrectQueryCounts, type IncorrectQueryCount } from './query-counts.ts';
export { PROJECTOR_LEASE, type RebuildOptions, rebuild, rebuildIfOutdated } from './rebuild.ts';
export {
  type BlockedProjection,
  countIncompleteStreams,
  listBlockedProjections,
  listSkippedEvents,
  type SkippedEvent,
  skipEvent,
} from './skipped-events.ts';
export { StartupCatchUp } from './startup-catch-up.ts';
export { TopupFinder, type TopupLookupResult } from './topup-finder.ts';
export { findTopupIds, foldTopup, type TopupStatus, type TopupView } from './topups.ts';
export { readVideoJobs, type VideoJobView } from './video-jobs.ts';
export { readVideoPage, type VideoPage, type VideoPageFilter } from './videos.ts';

/** All projections, in the order of their migrations. */
export const projections: readonly Projection[] = [
  balances,
  journal,
  keys,
  queries,
  topups,
  holds,
  autoTopups,
  videoJobs,
  challenges,
  videos,
];

export const projectionMigrations = [
  ...checkpointMigrations,
  ...projections.flatMap(({ migrations }) => migrations),
  ...skipMigrations,
  ...rebuildMigrations,
];
