export type { BillLine } from './bill.ts';
export { BY_A_TEST } from './by-a-test.ts';
export { Cable } from './cable.ts';
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
} from './charges.ts';
export { eventStoreContract, type Opened } from './contracts/event-store.ts';
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
export { EventStoreDbDouble } from './eventstoredb-double/eventstoredb-double.ts';
export { everythingStored, LogTap } from './everything-stored.ts';
export { formOf, PIXEL } from './forms.ts';
export { decisions, nextSteps } from './given.ts';
export { issuedChallenge } from './issued-challenge.ts';
export { KeyedRequests } from './keyed-requests.ts';
export { type Malformed, malformed } from './malformed.ts';
export { type Recording, SOUND_FORMATS, type SoundFormat, soundFile } from './media-files.ts';
export { OPENAPI_STRUCTURE } from './openapi-structure.ts';
export { replacePauses } from './pauses.ts';
export { type AskedFor, type Outcome, STORIES, type StoryName, StoryTeller } from './payment-stories.ts';
export {
  chatEvents,
  encrypted,
  keyProblem,
  PlayedGateway,
  plain,
  type SealedCall,
  type SealedReply,
} from './played-gateway.ts';
export { openS3, type S3Server } from './s3-server.ts';
export { type HowToPay, SandboxWallet } from './sandbox-wallet.ts';
export { selfSigned } from './self-signed.ts';
export { addPayments, copyCatalogue, TEST_MODELS, testModel, testOffer } from './test-catalogue.ts';
export { createTestDatabase, type TestDatabase } from './test-database.ts';
export { coinOf, issuedInvoice, paymentOf } from './top-ups.ts';
export { openTapped, type Received, type TappedWorld, Wiretap } from './wiretap.ts';
export { type Answer, type TestAccount, type TestWallet, World } from './world.ts';
