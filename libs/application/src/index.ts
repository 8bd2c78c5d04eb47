export { accountIdsOf } from './accounts/credit-id.ts';
export {
  CreateKey,
  CreateKeyHandler,
  type KeyFields,
  RevokeKey,
  RevokeKeyHandler,
  UpdateKey,
  UpdateKeyHandler,
} from './accounts/keys.ts';
export { OpenAccount, OpenAccountHandler, type OpenedAccount } from './accounts/open-account.ts';
export {
  AutoTopupLimits,
  ConnectWallet,
  ConnectWalletHandler,
  DisconnectWallet,
  DisconnectWalletHandler,
  MIN_THRESHOLD_USD,
  WalletAgreements,
} from './autotopup/connect-wallet.ts';
export { AutoTopupInvoices, InvoiceRefused } from './autotopup/invoices.ts';
export { type WalletAnswer, type WalletConnection, Wallets, WalletUnreached } from './autotopup/wallets.ts';
export { type Audience, CallLimits, Paying } from './billing/billing-engine.ts';
export type { ProvenChallenge } from './billing/challenge-payer.ts';
export { costDetails } from './billing/cost-details.ts';
export { FreeUse } from './billing/free-model-limits.ts';
export { EXPIRY_MARGIN_MS, expireHoldsBy, HeldFunds } from './billing/hold-commands.ts';
export {
  CONFLICTING_KEYS,
  Idempotency,
  IdempotencyConflict,
  type KeyedRequest,
  leaseOf,
  type Served,
} from './billing/idempotency.ts';
export { type Claim, type Earlier, type Ending, type KeptAnswer, KeptAnswers } from './billing/idempotency-store.ts';
export {
  actorOf,
  type Caller,
  type Hold,
  type HoldRequest,
  HoldTaken,
  type Payer,
  type Release,
} from './billing/payer.ts';
export { Payers } from './billing/payer-factory.ts';
export type { Receipt } from './billing/purchase.ts';
export { AskingPayer, PaymentWanted } from './billing/quote-only-payer.ts';
export { Refusals } from './billing/refused-request-recorder.ts';
export type { BytesClient } from './billing/relay-bytes.ts';
export { Gathered } from './byte-accumulator.ts';
export { Catalogues, served, type Vendors } from './catalogue-service.ts';
export { ChallengeTokens } from './challenges/challenge-tokens.ts';
export {
  IssueChallenge,
  IssueChallengeHandler,
  type PaymentChallenge,
  takesChallenges,
} from './challenges/issue-challenge.ts';
export { type Proof, type ProofFault, Proofs, type ShownProof } from './challenges/proofs.ts';
export { Clock, SystemClock } from './clock.ts';
export { wantedLookUp } from './data/parse-data-lookup.ts';
export { LookUp, type LookUpClient, LookUpHandler } from './data/run-data-lookup.ts';
export { asFailure, type FailureCode, UnservableRequest, UpstreamFailure } from './errors.ts';
export type { ChatBody, Reasoning } from './inference/chat/chat-body.ts';
export { LEAST_OUTPUT } from './inference/chat/chat-quote.ts';
export { type AnswerClient, ClientPatience, type Source, type WholeChat } from './inference/chat/completion-writer.ts';
export { boundInputTokens, countInputTokens, countTokens } from './inference/chat/count-tokens.ts';
export type { ChatDelta, TypedEvent } from './inference/chat/translating-writer.ts';
export { ChatQuotes } from './inference/chat-execution/chat-quoter.ts';
export { CompleteChat, CompleteChatHandler } from './inference/chat-execution/complete-chat.ts';
export { AnswerLengths } from './inference/chat-execution/output-length-stats.ts';
export { type CompletionBody, chatFor } from './inference/completions/completions.ts';
export { withTools } from './inference/completions/functions.ts';
export { type Retelling, retold } from './inference/completions/translate.ts';
export {
  CreateEmbeddings,
  CreateEmbeddingsHandler,
  type EmbeddingAnswer,
  type EmbeddingBody,
} from './inference/embeddings/create-embeddings.ts';
export type { MessagesBody } from './inference/messages/body.ts';
export { CountMessageTokens, CountMessageTokensHandler } from './inference/messages/count-tokens.ts';
export { CreateMessage, CreateMessageHandler } from './inference/messages/create-message.ts';
export { MessageDraft } from './inference/messages/message-builder.ts';
export type { MessageOutlet } from './inference/messages/message-writer.ts';
export { type MessagesRequest, readMessagesRequest } from './inference/messages/request.ts';
export { privateModel } from './inference/private/private-order.ts';
export {
  RelayPrivateChat,
  RelayPrivateChatHandler,
  type SealedClient,
} from './inference/private/relay-private-chat.ts';
export type { ResponsesBody } from './inference/responses/body.ts';
export { type ChatRequest, Chats } from './inference/responses/chat-service.ts';
export {
  Conversations,
  PreviousRemoved,
  type Recalled,
  type StoredChain,
  type StoredReader,
  type StoredResponse,
  StoredResponses,
  type WantedResponse,
} from './inference/responses/conversations.ts';
export { CountResponseTokens, CountResponseTokensHandler } from './inference/responses/count-tokens.ts';
export { CreateResponse, CreateResponseHandler } from './inference/responses/create-response.ts';
export { NativeOutput } from './inference/responses/native-output.ts';
export { LOGPROBS, wantsEncrypted } from './inference/responses/native-request.ts';
export { ResponseOutput } from './inference/responses/output.ts';
export type { OutputItem } from './inference/responses/output-items.ts';
export type { ChatMessage } from './inference/responses/parts.ts';
export { type ResponsesRequest, readResponsesRequest } from './inference/responses/request.ts';
export { ResponseReading } from './inference/responses/request-loader.ts';
export type { ResponseError } from './inference/responses/response-builder.ts';
export type { ResponseOutlet } from './inference/responses/response-writer.ts';
export { type ItemPage, inputOf, pageOf } from './inference/responses/stored-items.ts';
export type { Conversation } from './inference/responses/stored-parts.ts';
export { Toolset } from './inference/responses/toolset.ts';
export { isParsable, MAX_PARTS } from './json-limits.ts';
export { type Recording, RecordingLength } from './media/audio/audio-duration.ts';
export { DEFAULT_SPEAKER, Speak, SpeakHandler, type SpeechBody } from './media/audio/speak.ts';
export {
  DEFAULT_TRANSCRIBER,
  Transcribe,
  TranscribeHandler,
  type Transcription,
  type TranscriptionBody,
} from './media/audio/transcribe.ts';
export { languagesOf, speaks } from './media/audio/voices.ts';
export { type DataUri, dataUri, isDataUri } from './media/data-uri.ts';
export { type Download, DownloadFailure, type DownloadLimits, Downloads } from './media/downloads.ts';
export {
  type ByteRange,
  type FileName,
  type FilePurpose,
  FileStore,
  FilesUnavailable,
  type FileToKeep,
  type KeptFile,
  newFileId,
  readFileId,
} from './media/file-store.ts';
export {
  type DeliveredImage,
  type ImageAnswer,
  MakeImages,
  MakeImagesHandler,
} from './media/images/generate-images.ts';
export { ImageFiles, type UploadedImages } from './media/images/image-files.ts';
export { ImageMaker } from './media/images/image-generator.ts';
export { ImageQuotes } from './media/images/image-quoter.ts';
export type { ImageBody } from './media/images/image-request.ts';
export { LINK_LASTS_MS, MediaLinks } from './media/media-links.ts';
export { RefusedPrompts } from './media/rejected-prompts.ts';
export {
  filePath,
  type LinkCheck,
  type LinkPurpose,
  LinkSigner,
  type Signed,
  SignedLinks,
  statusPath,
} from './media/signed-links.ts';
export {
  RefusedVideos,
  RequestVideo,
  RequestVideoHandler,
  type VideoPreparations,
  type VideoRequest,
  videoIdOf,
} from './media/videos/request-video.ts';
export { type VideoBody, type VideoQuote, VideoQuotes } from './media/videos/video-quoter.ts';
export { type KeptRequest, KeptRequests, RequestLost } from './media/videos/video-request-store.ts';
export { NoVideo, type StoredVideo, VideoResults } from './media/videos/video-results.ts';
export {
  evidenceOf,
  type HookedSubmission,
  VideoHints,
  VideoHookReceiver,
  VideoHooks,
} from './media/videos/video-webhooks.ts';
export type { DataAnswer, DataCall, FoundData, FoundFile } from './providers/data-calls.ts';
export type {
  ImageCall,
  MadeFile,
  MadeImages,
  MadeUse,
  MediaParameters,
  SourceImage,
  Speech,
  SpeechCall,
  SpokenSegment,
  SpokenWord,
  SubmittedVideo,
  Transcript,
  TranscriptionCall,
  VendorHook,
  VideoLook,
  VideoMaker,
  VideoOrder,
  WireMapping,
} from './providers/media-calls.ts';
export {
  type PrivateChatCall,
  type SealedAnswer,
  type SealedHead,
  type SealedPiece,
  SealedRefusal,
} from './providers/private-calls.ts';
export {
  type AnswerIdentity,
  type Capability,
  type ChatCall,
  type ChatProtocol,
  type EmbeddingCall,
  type Embeddings,
  type EventReceiver,
  type Provider,
  Providers,
  type Sampling,
  type StreamedAnswer,
  type WholeAnswer,
} from './providers/provider.ts';
export {
  type Found,
  MAX_RESULT_CHARACTERS,
  type NativeSearch,
  type SearchNote,
  type SearchQuery,
  type SearchResult,
} from './providers/web-search.ts';
export { AbuseLimits, type Counted, TooManyRequests } from './rate-limiter.ts';
export { EndpointHealth } from './routing/endpoint-health.ts';
export { defaultEndpoints } from './routing/route.ts';
export { keyIdOf, type Sealed, Secrets } from './secrets.ts';
export { StorageRoom } from './storage-quota.ts';
export {
  Accounts,
  AutoTopups,
  Challenges,
  openStreams,
  PriceLists,
  RefusedRequests,
  Streams,
  Topups,
  Videos,
} from './streams.ts';
export { cut, scrubbed } from './third-party-text.ts';
export {
  type CreatedTopup,
  CreateTopup,
  CreateTopupHandler,
  newTopupId,
  noMethod,
  TOPUP_ID_LENGTH,
} from './topups/create-topup.ts';
export { ExchangeRates, type Rate } from './topups/exchange-rates.ts';
export {
  type BackendPayment,
  type PaymentBackend,
  PaymentBackends,
  type PaymentRequest,
  type RequestedPayment,
  type WebHook,
} from './topups/payment-backend.ts';
export { CARD, type OfferedMethod, OfferedPayments } from './topups/payment-methods.ts';
export { receivedIn } from './topups/received-amount.ts';
export { TopupPayments } from './topups/topup-payments.ts';
export { TopupHints } from './topups/topup-poll-trigger.ts';
export type { Thing } from './wire/json-object.ts';
export { DONE, MAX_EVENT_CHARACTERS, SseReader, sseComment, sseData, sseEvent } from './wire/sse.ts';
