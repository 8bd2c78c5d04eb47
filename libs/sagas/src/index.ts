export { type AutoTopupPorts, runAutoTopups } from './auto-topup.ts';
export { type ChallengeWatchPorts, watchChallenges } from './challenge-watch.ts';
export { expireFiles, type FileExpiryPorts } from './file-expiry.ts';
export { forfeitUnclaimed, type UnclaimedPorts } from './forfeit-unclaimed.ts';
export { expireHolds, type HoldExpiryPorts } from './hold-expiry.ts';
export { type TopupWatchPorts, watchTopups } from './topup-watch.ts';
export { runVideos, type VideoPorts } from './videos.ts';
