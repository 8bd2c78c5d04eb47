export { generateCreditId, toAccountIds } from './accounts/credit-id.ts';
export { resolvePermittedModels } from './accounts/key-models.ts';
export {
  CreateKey,
  CreateKeyHandler,
  type KeyFields,
  RevokeKey,
  RevokeKeyHandler,
  UpdateKey,
  UpdateKeyHandler,
} from './accounts/keys.ts';
export { generateApiKey, OpenAccount, OpenAccountHandler } from './accounts/open-account.ts';
export {
  AutoTopupLimits,
  ConnectWallet,
  ConnectWalletHandler,
  DisconnectWallet,
  DisconnectWalletHandler,
  MIN_AUTO_TOPUP_THRESHOLD_USD,
  WalletConnector,
} from './autotopup/connect-wallet.ts';
export { AutoTopupInvoices, InvoiceRejectedError } from './autotopup/invoices.ts';
export { type WalletConnection, type WalletResponse, Wallets, WalletUnreachableError } from './autotopup/wallets.ts';
export { BillingEngine, CallLimits } from './billing/billing-engine.ts';
export type { PaidChallenge } from './billing/challenge-payer.ts';
export { toCostDetails } from './billing/cost-details.ts';
export { CostMonitor } from './billing/cost-monitor.ts';
export { type ClaimContent, DedupingPayer, RepeatedRequestError } from './billing/deduping-payer.ts';
export { FreeModelLimits } from './billing/free-model-limits.ts';
export {
  createExpireHoldsCommand,
  EXPIRY_MARGIN_MS,
  HoldCommandRouter,
  MAX_PLACEMENT_MS,
} from './billing/hold-commands.ts';
export {
  type ClaimedRequest,
  getClaimLeaseMs,
  IdempotencyService,
  type IdempotentRequest,
  type RepeatedResponse,
} from './billing/idempotency.ts';
export { IDEMPOTENCY_ERROR_TYPES, IdempotencyConflictError } from './billing/idempotency-conflict.ts';
export {
  type ClaimOutcome,
  type ExistingClaim,
  type IdempotencyClaim,
  IdempotencyStore,
  type SavedHttpResponse,
} from './billing/idempotency-store.ts';
export type { Receipt } from './billing/order.ts';
export {
  type Caller,
  type Hold,
  HoldAlreadyExistsError,
  type HoldRequest,
  type Payer,
  PayerDecorator,
  toActor,
} from './billing/payer.ts';
export { PayerFactory } from './billing/payer-factory.ts';
export { PaymentRegistry } from './billing/payment-registry.ts';
export { PaymentRequiredError, QuoteOnlyPayer } from './billing/quote-only-payer.ts';
export { RefusedRequestRecorder } from './billing/refused-request-recorder.ts';
export type { ByteWriter } from './billing/relay-bytes.ts';
export type { ReportedBill } from './billing/reported-bill.ts';
export type { HoldRetry } from './billing/stream-payer.ts';
export { ByteAccumulator } from './byte-accumulator.ts';
export { assertProvidersSupport, CatalogueService, type ProviderAvailability } from './catalogue-service.ts';
export { ChallengeTokens } from './challenges/challenge-tokens.ts';
export {
  CHALLENGE_USABLE_MS,
  canIssueChallenges,
  IssueChallenge,
  IssueChallengeHandler,
  type PaymentChallenge,
} from './challenges/issue-challenge.ts';
export {
  type InvalidProofReason,
  type PresentedProof,
  ProofVerifier,
  type VerifiedProof,
} from './challenges/proofs.ts';
export { Clock } from './clock.ts';
export { getByPath } from './data/field-paths.ts';
export { parseDataLookup } from './data/parse-data-lookup.ts';
export {
  assertLookupOffered,
  type DataFileWriter,
  RunDataLookup,
  RunDataLookupHandler,
} from './data/run-data-lookup.ts';
export { type Download, DownloadError, Downloader, type DownloadLimits } from './downloads.ts';
export {
  createCredentialError,
  createOperatorError,
  type ErrorRuleFile,
  type FailureCode,
  type FailureDetails,
  InvalidRequestError,
  isCertainRejection,
  isOperatorProblem,
  MESSAGE_PROVIDER_UNAVAILABLE,
  type OperatorProblem,
  type OperatorProblemReason,
  type OperatorProblemScope,
  toUpstreamError,
  UpstreamError,
} from './errors.ts';
export { divide, shareEventLoop, WorkParts } from './event-loop.ts';
export { HeavyWorkQueue, MAX_SMALL_JSON_BYTES, type WorkStep } from './heavy-work-queue.ts';
export { type ChatBody, disablesReasoning, type Reasoning } from './inference/chat/chat-body.ts';
export { MIN_RESPONSES_OUTPUT_TOKENS } from './inference/chat/chat-quote.ts';
export {
  type CompletionSource,
  type CompletionWriter,
  KeepAliveSettings,
} from './inference/chat/completion-writer.ts';
export { countInputTokens, countMaxChatInputTokens } from './inference/chat/count-tokens.ts';
export { InferenceServices } from './inference/chat/inference-services.ts';
export type { TypedEvent } from './inference/chat/translating-writer.ts';
export { ChatQuoter } from './inference/chat-execution/chat-quoter.ts';
export { CompleteChat, CompleteChatHandler } from './inference/chat-execution/complete-chat.ts';
export { OutputLengthStats } from './inference/chat-execution/output-length-stats.ts';
export { type CompletionBody, toChatRequest } from './inference/completions/completions.ts';
export { toToolsRequest } from './inference/completions/functions.ts';
export { type TranslateChunk, translateEvents } from './inference/completions/translate.ts';
export {
  CreateEmbeddings,
  CreateEmbeddingsHandler,
  type EmbeddingRequestBody,
  type EmbeddingsResult,
} from './inference/embeddings/create-embeddings.ts';
export type { MessagesBody } from './inference/messages/body.ts';
export { CountMessageTokens, CountMessageTokensHandler } from './inference/messages/count-tokens.ts';
export { CreateMessage, CreateMessageHandler } from './inference/messages/create-message.ts';
export { MessageBuilder } from './inference/messages/message-builder.ts';
export type { MessageEventOutput } from './inference/messages/message-writer.ts';
export { type ParsedMessagesRequest, parseMessagesRequest } from './inference/messages/request.ts';
export { ThreadLoader } from './inference/messages/threads.ts';
export { PrivateChatQuoter, resolvePrivateModel } from './inference/private/private-order.ts';
export {
  type CiphertextWriter,
  RelayPrivateChat,
  RelayPrivateChatHandler,
} from './inference/private/relay-private-chat.ts';
export type { ResponsesBody } from './inference/responses/body.ts';
export { type ChatConnection, type ChatParams, ChatService } from './inference/responses/chat-service.ts';
export {
  ConversationService,
  PreviousResponseRemovedError,
  ResponseStore,
  STORE_TIMEOUT_MS,
  type StoredChain,
  type StoredResponse,
  type StoredResponseReader,
  type StoredResponseRef,
} from './inference/responses/conversations.ts';
export { CountResponseTokens, CountResponseTokensHandler } from './inference/responses/count-tokens.ts';
export { CreateResponse, CreateResponseHandler } from './inference/responses/create-response.ts';
export { LOGPROBS_INCLUDE, requestsEncryptedReasoning } from './inference/responses/native-request.ts';
export type { ChatMessage } from './inference/responses/parts.ts';
export { parseResponsesRequest } from './inference/responses/request.ts';
export { ResponseRequestLoader } from './inference/responses/request-loader.ts';
export type { ResponseError } from './inference/responses/response-builder.ts';
export type { ResponseEventOutput } from './inference/responses/response-writer.ts';
export { getFullInput, paginateItems } from './inference/responses/stored-items.ts';
export type { Conversation, LoadedConversation } from './inference/responses/stored-parts.ts';
export { countJsonValues } from './json-limits.ts';
export { AudioDurationCounter, type AudioRecording } from './media/audio/audio-duration.ts';
export { listAvailableAudioModels } from './media/audio/audio-models.ts';
export { Speak, SpeakHandler, type SpeechBody } from './media/audio/speak.ts';
export {
  Transcribe,
  TranscribeHandler,
  type Transcription,
  type TranscriptionBody,
} from './media/audio/transcribe.ts';
export { isListedForLanguage, listLanguages } from './media/audio/voices.ts';
export { toBlob } from './media/blob.ts';
export { type DataUri, isDataUri, parseDataUri } from './media/data-uri.ts';
export {
  type ByteRange,
  type FileName,
  FileStore,
  FileStoreUnavailableError,
  type FileToStore,
  generateFileId,
  parseFileId,
  type StoredFile,
} from './media/file-store.ts';
export {
  type DeliveredImage,
  GenerateImages,
  GenerateImagesHandler,
  type GenerateImagesResult,
} from './media/images/generate-images.ts';
export { ImageFiles, type UploadedImages } from './media/images/image-files.ts';
export { ImageGenerator } from './media/images/image-generator.ts';
export { ImageQuoter } from './media/images/image-quoter.ts';
export type { ImageBody } from './media/images/image-request.ts';
export { MAX_LINK_LIFETIME_MS, MediaLinks } from './media/media-links.ts';
export { RejectedPrompts } from './media/rejected-prompts.ts';
export { MAX_SAVED_BYTES, restoreImages } from './media/saved-images.ts';
export {
  LinkSigner,
  SignedLinks,
  toFilePath,
  toStatusPath,
} from './media/signed-links.ts';
export {
  RejectedVideoLimit,
  RequestVideo,
  RequestVideoHandler,
  toVideoId,
} from './media/videos/request-video.ts';
export { type VideoBody, VideoQuoter } from './media/videos/video-quoter.ts';
export {
  StoredRequestLostError,
  type StoredVideoRequest,
  VideoRequestStore,
} from './media/videos/video-request-store.ts';
export { type StoredVideo, VideoFetchError, VideoResults } from './media/videos/video-results.ts';
export {
  toHold,
  VideoPollTrigger,
  VideoWebhookReceiver,
  VideoWebhooks,
} from './media/videos/video-webhooks.ts';
export {
  callMonitored,
  NO_SERVICE_MONITOR,
  OperatorProblems,
  type ServiceMonitor,
} from './operator-problems.ts';
export type { DataCall, DataResponse, FileDataResponse, JsonDataResponse } from './providers/data-calls.ts';
export type {
  GeneratedFile,
  GeneratedImages,
  ImageCall,
  ImageProperties,
  MediaParameters,
  ProviderWebhook,
  SourceImage,
  SpeechAudio,
  SpeechCall,
  SpokenSegment,
  SpokenWord,
  SubmittedVideo,
  Transcript,
  TranscriptionCall,
  VideoOrder,
  VideoProvider,
  VideoStatus,
  WireMapping,
} from './providers/media-calls.ts';
export {
  type EncryptedChunk,
  EncryptedErrorResponse,
  type EncryptedResponse,
  type EncryptedResponseHead,
  type PrivateChatCall,
} from './providers/private-calls.ts';
export {
  type AppliedSampling,
  type Capability,
  type ChatCall,
  type ChatProtocol,
  type Completion,
  type CompletionIdentity,
  type CompletionStream,
  type EmbeddingCall,
  type EmbeddingsResponse,
  type ModelRules,
  type PausedResponse,
  type Provider,
  ProviderRegistry,
  type SseEventSink,
} from './providers/provider.ts';
export { parseSearchBlocks } from './providers/search-blocks.ts';
export { parseStopDetails, type StopDetails } from './providers/stop-details.ts';
export {
  MAX_RESULT_CHARACTERS,
  type NativeSearch,
  type SearchPage,
  type SearchQuery,
  type SearchResult,
  type SearchStatus,
  type WebSearchResponse,
} from './providers/web-search.ts';
export { RateLimiter, type RateLimitKey, TooManyRequestsError } from './rate-limiter.ts';
export { requestsZdr } from './routing/data-retention.ts';
export { EndpointHealth } from './routing/endpoint-health.ts';
export { assertModelOffered } from './routing/preferences.ts';
export { selectDefaultEndpoints } from './routing/route.ts';
export { type Sample, SampleRegistry, SampleStore } from './sample-registry.ts';
export { MAX_SAMPLES } from './sample-window.ts';
export { Secrets, toMasterKeyId } from './secrets.ts';
export { StorageQuota } from './storage-quota.ts';
export {
  Accounts,
  AutoTopups,
  Challenges,
  createStreams,
  PriceLists,
  RefusedRequests,
  Streams,
  Topups,
  Videos,
} from './streams.ts';
export { sanitizeThirdPartyText, truncateText } from './third-party-text.ts';
export { TokenCounter } from './tokens/token-counter.ts';
export {
  CreateTopup,
  CreateTopupHandler,
  createMethodError,
  generateTopupId,
  NO_BACKEND_MESSAGE,
  TOPUP_ID_LENGTH,
} from './topups/create-topup.ts';
export { ExchangeRates, type Rate } from './topups/exchange-rates.ts';
export { ListedLimits, type ListedMethod } from './topups/listed-limits.ts';
export {
  type BackendPayment,
  type CreatedPayment,
  monitorBackend,
  type PaymentBackend,
  PaymentBackendRegistry,
  type PaymentRequest,
  type WebhookRequest,
} from './topups/payment-backend.ts';
export { CARD_METHOD, PaymentMethods } from './topups/payment-methods.ts';
export { toReceivedAmount } from './topups/received-amount.ts';
export { TopupPayments } from './topups/topup-payments.ts';
export { TopupPollTrigger } from './topups/topup-poll-trigger.ts';
export { serializeJson, stringifyJson } from './wire/serialize-json.ts';
export {
  formatSseComment,
  formatSseEvent,
  MAX_EVENT_CHARACTERS,
  SSE_DONE,
  SseParser,
} from './wire/sse.ts';
