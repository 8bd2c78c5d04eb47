import { autoTopups } from './auto-topups.ts';
import { balances } from './balances.ts';
import { challenges } from './challenges.ts';
import { holds } from './holds.ts';
import { journal } from './journal.ts';
import { keys } from './keys.ts';
import { checkpointMigrations, type Projection } from './projection.ts';
import { queries } from './queries.ts';
import { skipMigrations } from './skipped-events.ts';
import { topups } from './topups.ts';
import { videoJobs } from './video-jobs.ts';

export { type AutoTopupView, autoTopupOf, readAutoTopup } from './auto-topups.ts';
export { type Balance, readBalance } from './balances.ts';
export { type ChallengeView, readChallenges, unclaimedChallenges } from './challenges.ts';
export { UpToDate } from './freshness-check.ts';
export {
  COUNTED_BEHIND,
  HISTORY_REACH,
  type HistoryFilter,
  type HistoryPage,
  type HistoryRecord,
  PageTooFar,
  QueryHistory,
} from './history.ts';
export { type OwnerOfHolds, payersWithHoldsOf, payersWithOverdueHolds } from './holds.ts';
export { findKey, type KeyOwner, type KeyView, readKey, readKeys } from './keys.ts';
export { ProjectorLag } from './lag.ts';
export { type Place, Progress } from './progress.ts';
export {
  asWritten,
  BOOKS_OPTIONS,
  type Fact,
  type FoldProjection,
  type LogProjection,
  type Projection,
  type Row,
  sinkOf,
} from './projection.ts';
export { listenForWanted, Wanted } from './projector-wakeup.ts';
export {
  countRefusedVideos,
  type MedianCost,
  readMedianCosts,
} from './queries.ts';
export { type RebuildOptions, rebuild, rebuildIfOutdated } from './rebuild.ts';
export {
  countIncomplete,
  readSkipped,
  readStopped,
  type SkippedFact,
  type StoppedProjection,
  skipFact,
} from './skipped-events.ts';
export { CatchUp } from './startup-catch-up.ts';
export { findTopups, type TopupStatus, type TopupView, topupOf } from './topups.ts';
export { type FoundTopups, TopupsByReference } from './topups-by-reference.ts';
export { readVideoJobs, type VideoJobView } from './video-jobs.ts';

/** Every read model. The order is that of their migrations. */
export const projections = [
  balances,
  journal,
  keys,
  queries,
  topups,
  holds,
  autoTopups,
  videoJobs,
  challenges,
] as unknown as readonly Projection[];

export const projectionMigrations = [
  ...checkpointMigrations,
  ...projections.flatMap(({ migrations }) => migrations),
  ...skipMigrations,
];
