export { eventStoreContract, type OpenedStore } from './contracts/event-store.ts';
export { fileStoreContract } from './contracts/file-store.ts';
export {
  type OpenBackend,
  type PaymentCapability,
  type PaymentCase,
  paymentBackendContract,
  type Wallet,
} from './contracts/payment-backend.ts';
export { countPauses } from './count-pauses.ts';
export { AttestedEnclave, type EnclaveOverrides } from './enclave/attested-enclave.ts';
export * as der from './enclave/der.ts';
export { createExtension } from './enclave/issue.ts';
export { TestProcessor } from './enclave/test-processor.ts';
export { TestSigstore } from './enclave/test-sigstore.ts';
export { FakeEventStoreDb } from './fake-eventstoredb/fake-eventstoredb.ts';
export { createDeciderTest, createWorkflowTest } from './given-when-then.ts';
export { createForm, PIXEL } from './inputs/forms.ts';
export { generateMalformed, type Malformed } from './inputs/malformed.ts';
export { AUDIO_FORMATS, type AudioFormat, createAudioFile, type TestRecording } from './inputs/media-files.ts';
export { ProgressRecorder } from './progress-recorder.ts';
export { ContractGate } from './provider-contracts/gate.ts';
export { CHAT_DEVIATIONS, type ListedDeviation, MEDIA_DEVIATIONS } from './provider-contracts/listed-deviations.ts';
export { extendDelay, extendTimeouts, replaceDelays, shortenDelays } from './replace-delays.ts';
export { sampleCases, sampleSize, USES_ALL_CASES } from './sample-cases.ts';
export {
  createCharge,
  formatTotalCost,
  isEstimated,
  isExplained,
  listCallItems,
  listCharges,
  listExtraItems,
  sumUsage,
  type TokenCounts,
  toTokenUsage,
} from './scenarios/charges.ts';
export { createIssuedChallenge } from './scenarios/issued-challenge.ts';
export { createFullPayment, createIssuedInvoice, getCoin } from './scenarios/top-ups.ts';
export { DelayedDatabase, REJECTIONS } from './servers/delayed-database.ts';
export {
  createChatEvents,
  createEncryptedReply,
  createPlaintextReply,
  FakeGateway,
  type SealedCall,
  type SealedReply,
  sendKeyProblem,
} from './servers/fake-gateway.ts';
export { NetworkLink } from './servers/network-link.ts';
export { ProviderRecorder } from './servers/provider-recorder.ts';
export { openS3Server, type S3Server } from './servers/s3-server.ts';
export { createSelfSignedCertificate } from './servers/self-signed.ts';
export { shiftClock } from './shift-clock.ts';
export { slowTime } from './slow-time.ts';
export { SystemClock } from './system-clock.ts';
export { TEST_CAUSE } from './test-cause.ts';
export { createTestRuntime } from './test-runtime.ts';
export { waitUntil } from './wait-until.ts';
export { dumpDatabase, LogTap } from './world/dump-database.ts';
export { KeyedRequests } from './world/keyed-requests.ts';
export {
  type DocumentedOperation,
  getExample,
  isEncrypted,
  listOperations,
  OperationCaller,
  takesForm,
  toOperationBody,
} from './world/operation-caller.ts';
export {
  type RequestedTopup,
  SCENARIOS,
  type ScenarioName,
  type ScenarioOutcome,
  ScenarioRunner,
} from './world/payment-scenarios.ts';
export { runLedger } from './world/run-ledger.ts';
export type { BillLine } from './world/sandbox-bill.ts';
export { type PayOptions, SandboxWallet } from './world/sandbox-wallet.ts';
export { openStandalone, type RunningStandalone } from './world/standalone.ts';
export {
  addPaymentMethods,
  copyCatalogue,
  copyUndatedCatalogue,
  createSmallCatalogue,
  createTestEndpoint,
  createTestModel,
  TEST_DAY,
  TEST_MODELS,
} from './world/test-catalogue.ts';
export { createMigratedDatabase, createTestDatabase, type TestDatabase } from './world/test-database.ts';
export { readResponse, type TestResponse } from './world/test-response.ts';
export { timeOut } from './world/time-out.ts';
export { type CapturedRequest, openTappedWorld, type TappedWorld, Wiretap } from './world/wiretap.ts';
export { type TestAccount, type TestWallet, TestWorld } from './world/world.ts';
