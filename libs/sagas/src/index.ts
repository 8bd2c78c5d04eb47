export { type AutoTopupWorkflowDependencies, runAutoTopups } from './auto-topup.ts';
export { type ChallengeWorkflowDependencies, watchChallenges } from './challenge-watch.ts';
export { expireFiles, type FileExpiryPorts } from './file-expiry.ts';
export { type ForfeitDependencies, forfeitUnclaimedPayments } from './forfeit-unclaimed.ts';
export { expireHolds, type HoldExpiryDependencies } from './hold-expiry.ts';
export { type TopupWorkflowDependencies, watchTopups } from './topup-watch.ts';
export { runVideos, type VideoWorkflowDependencies } from './videos.ts';
