export { type AutoTopupPorts, runAutoTopups } from './auto-topup.ts';
export { expireFiles, type FileExpiryPorts } from './file-expiry.ts';
export { expireHolds, type HoldExpiryPorts } from './hold-expiry.ts';
export type { PayerStreams } from './payer-streams.ts';
export { type TopupWatchPorts, watchTopups } from './topup-watch.ts';
export { runVideos, type VideoPorts } from './videos.ts';
