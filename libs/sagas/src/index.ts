export { type AutoTopupWorkflowDependencies, runAutoTopupWorkflow } from './auto-topup-workflow.ts';
export { type ChallengeWorkflowDependencies, runChallengeWorkflow } from './challenge-workflow.ts';
export { expireFiles, type FileExpiryDependencies } from './file-expiry.ts';
export { type ForfeitDependencies, forfeitUnclaimedPayments } from './forfeit-unclaimed.ts';
export { expireHolds, type HoldExpiryDependencies } from './hold-expiry.ts';
export { PAYMENT_CLAIMS } from './payment-claims.ts';
export { runTopupWorkflow, type TopupWorkflowDependencies } from './topup-workflow.ts';
export { runVideoWorkflow, type VideoWorkflowDependencies } from './video-workflow.ts';
