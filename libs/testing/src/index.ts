export { eventStoreContract, type OpenedStore } from './contracts/event-store.ts';
export { fileStoreContract } from './contracts/file-store.ts';
export {
  type OpenBackend,
  type Payable,
  paymentBackendContract,
  type Taken,
  type Wallet,
} from './contracts/payment-backend.ts';
export { AttestedEnclave, type EnclaveWish } from './enclave/attested-enclave.ts';
export * as der from './enclave/der.ts';
export { extension } from './enclave/issue.ts';
export { TestProcessor } from './enclave/test-processor.ts';
export { TestSigstore } from './enclave/test-sigstore.ts';
export { EventStoreDbDouble } from './fake-eventstoredb/fake-eventstoredb.ts';
export { decisions, nextSteps } from './given-when-then.ts';
export { formOf, PIXEL } from './inputs/forms.ts';
export { type Malformed, malformed } from './inputs/malformed.ts';
export { SOUND_FORMATS, type SoundFormat, soundFile, type TestRecording } from './inputs/media-files.ts';
export { OPENAPI_STRUCTURE } from './inputs/openapi-structure.ts';
export { replacePauses } from './replace-delays.ts';
export {
  besideIn,
  billed,
  callsIn,
  chargesIn,
  isEstimated,
  isExplained,
  someCharge,
  type TokenCounts,
  tokensOf,
  usageIn,
} from './scenarios/charges.ts';
export { issuedChallenge } from './scenarios/issued-challenge.ts';
export { coinOf, issuedInvoice, paymentOf } from './scenarios/top-ups.ts';
export {
  chatEvents,
  encrypted,
  keyProblem,
  PlayedGateway,
  plain,
  type SealedCall,
  type SealedReply,
} from './servers/fake-gateway.ts';
export { Cable } from './servers/network-link.ts';
export { openS3, type S3Server } from './servers/s3-server.ts';
export { selfSigned } from './servers/self-signed.ts';
export { TEST_CAUSE } from './test-cause.ts';
export { everythingStored, LogTap } from './world/everything-stored.ts';
export { KeyedRequests } from './world/keyed-requests.ts';
export {
  type AskedFor,
  type ScenarioOutcome,
  STORIES,
  type StoryName,
  StoryTeller,
} from './world/payment-scenarios.ts';
export type { BillLine } from './world/sandbox-bill.ts';
export { type HowToPay, SandboxWallet } from './world/sandbox-wallet.ts';
export { addPayments, copyCatalogue, TEST_MODELS, testModel, testOffer } from './world/test-catalogue.ts';
export { createTestDatabase, type TestDatabase } from './world/test-database.ts';
export { type CapturedRequest, openTapped, type TappedWorld, Wiretap } from './world/wiretap.ts';
export { type TestAccount, type TestResponse, type TestWallet, TestWorld } from './world/world.ts';
