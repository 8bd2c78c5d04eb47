export { AbuseLimits, type Counted, TooManyRequests } from './abuse-limits.ts';
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
export { AutoTopupInvoices, InvoiceRefused } from './autotopup/auto-topup-invoices.ts';
export {
  AutoTopupLimits,
  ConnectWallet,
  ConnectWalletHandler,
  DisconnectWallet,
  DisconnectWalletHandler,
  MIN_THRESHOLD_USD,
  WalletAgreements,
} from './autotopup/connect-wallet.ts';
export { type WalletAnswer, type WalletConnection, Wallets, WalletUnreached } from './autotopup/wallets.ts';
export { Catalogues, served, type Vendors } from './catalogues.ts';

export { ChallengeTokens } from './challenges/challenge-tokens.ts';
export {
  IssueChallenge,
  IssueChallengeHandler,
  type PaymentChallenge,
  takesChallenges,
} from './challenges/issue-challenge.ts';
export { type Proof, type ProofFault, Proofs, type ShownProof } from './challenges/proofs.ts';
export { Clock, SystemClock } from './clock.ts';
export { LookUp, type LookUpClient, LookUpHandler } from './data/look-up.ts';
export { wantedLookUp } from './data/wanted-lookup.ts';
export { asFailure, type FailureCode, UnservableRequest, UpstreamFailure } from './failures.ts';
export { Gathered } from './gathered.ts';
export { AnswerLengths } from './inference/chat/answer-lengths.ts';
export { ChatQuotes } from './inference/chat/chat-quotes.ts';
export { CompleteChat, CompleteChatHandler } from './inference/chat/complete-chat.ts';
export {
  CreateEmbeddings,
  CreateEmbeddingsHandler,
  type EmbeddingAnswer,
  type EmbeddingBody,
} from './inference/embeddings/create-embeddings.ts';
export { type CompletionBody, chatFor } from './inference/legacy/completions.ts';
export { withTools } from './inference/legacy/functions.ts';
export { type Retelling, retold } from './inference/legacy/retold.ts';
export type { MessagesBody } from './inference/messages/body.ts';
export { CountMessageTokens, CountMessageTokensHandler } from './inference/messages/count-tokens.ts';
export { CreateMessage, CreateMessageHandler } from './inference/messages/create-message.ts';
export type { MessageOutlet } from './inference/messages/message-client.ts';
export { MessageDraft } from './inference/messages/message-draft.ts';
export { type MessagesRequest, readMessagesRequest } from './inference/messages/request.ts';
export { privateModel } from './inference/private/private-order.ts';
export {
  RelayPrivateChat,
  RelayPrivateChatHandler,
  type SealedClient,
} from './inference/private/relay-private-chat.ts';
export type { ResponsesBody } from './inference/responses/body.ts';
export { type ChatRequest, Chats } from './inference/responses/chats.ts';
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
export { ResponseReading } from './inference/responses/reading.ts';
export { type ResponsesRequest, readResponsesRequest } from './inference/responses/request.ts';
export type { ResponseOutlet } from './inference/responses/response-client.ts';
export type { ResponseError } from './inference/responses/response-draft.ts';
export { type ItemPage, inputOf, pageOf } from './inference/responses/stored-items.ts';
export type { Conversation } from './inference/responses/stored-parts.ts';
export { Toolset } from './inference/responses/toolset.ts';
export { type AnswerClient, ClientPatience, type Source, type WholeChat } from './inference/vocabulary/answers.ts';
export type { ChatBody, Reasoning } from './inference/vocabulary/chat-body.ts';
export { costDetails } from './inference/vocabulary/cost-details.ts';
export type { DataAnswer, DataCall, FoundData, FoundFile } from './inference/vocabulary/data-calls.ts';
export type { ChatDelta, TypedEvent } from './inference/vocabulary/event-client.ts';
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
  Wire,
} from './inference/vocabulary/media-calls.ts';
export {
  type PrivateChatCall,
  type SealedAnswer,
  type SealedHead,
  type SealedPiece,
  SealedRefusal,
} from './inference/vocabulary/private-calls.ts';
export {
  type AnswerIdentity,
  type Capability,
  type ChatCall,
  type EmbeddingCall,
  type Embeddings,
  type EventReceiver,
  type Language,
  type Provider,
  Providers,
  type Sampling,
  type StreamedAnswer,
  type WholeAnswer,
} from './inference/vocabulary/providers.ts';
export { LEAST_OUTPUT } from './inference/vocabulary/quote.ts';
export { DONE, MAX_EVENT_CHARACTERS, SseReader, sseComment, sseData, sseEvent } from './inference/vocabulary/sse.ts';
export type { Thing } from './inference/vocabulary/things.ts';
export { boundInputTokens, countInputTokens, countTokens } from './inference/vocabulary/tokens.ts';
export {
  type Found,
  MAX_RESULT_CHARACTERS,
  type NativeSearch,
  type SearchNote,
  type SearchQuery,
  type SearchResult,
} from './inference/vocabulary/web-search.ts';
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
export { ImageFiles, type UploadedImages } from './media/images/image-files.ts';
export { ImageMaker } from './media/images/image-maker.ts';
export { ImageQuotes } from './media/images/image-quotes.ts';
export type { ImageBody } from './media/images/image-request.ts';
export {
  type DeliveredImage,
  type ImageAnswer,
  MakeImages,
  MakeImagesHandler,
} from './media/images/make-images.ts';
export { LINK_LASTS_MS, MediaLinks } from './media/media-links.ts';
export { RefusedPrompts } from './media/refused-prompts.ts';
export {
  filePath,
  type LinkCheck,
  type LinkPurpose,
  LinkSigner,
  type Signed,
  SignedLinks,
  statusPath,
} from './media/signed-links.ts';
export { type Recording, RecordingLength } from './media/sound/recording-length.ts';
export { DEFAULT_SPEAKER, Speak, SpeakHandler, type SpeechBody } from './media/sound/speak.ts';
export {
  DEFAULT_TRANSCRIBER,
  Transcribe,
  TranscribeHandler,
  type Transcription,
  type TranscriptionBody,
} from './media/sound/transcribe.ts';
export { languagesOf, speaks } from './media/sound/voices.ts';
export { type KeptRequest, KeptRequests, RequestLost } from './media/videos/kept-requests.ts';
export {
  RefusedVideos,
  RequestVideo,
  RequestVideoHandler,
  type VideoPreparations,
  type VideoRequest,
  videoIdOf,
} from './media/videos/request-video.ts';
export {
  evidenceOf,
  type HookedSubmission,
  VideoHints,
  VideoHookReceiver,
  VideoHooks,
} from './media/videos/video-hooks.ts';
export { type VideoBody, type VideoQuote, VideoQuotes } from './media/videos/video-quotes.ts';
export { NoVideo, type StoredVideo, VideoResults } from './media/videos/video-results.ts';
export { isParsable, MAX_PARTS } from './parsable.ts';
export { AskingPayer, PaymentWanted } from './paying/asking-payer.ts';
export type { ProvenChallenge } from './paying/challenge-payer.ts';
export { FreeUse } from './paying/free-use.ts';
export { EXPIRY_MARGIN_MS, expireHoldsBy, HeldFunds } from './paying/held-funds.ts';
export {
  CONFLICTING_KEYS,
  Idempotency,
  IdempotencyConflict,
  type KeyedRequest,
  leaseOf,
  type Served,
} from './paying/idempotency.ts';
export { type Claim, type Earlier, type Ending, type KeptAnswer, KeptAnswers } from './paying/kept-answers.ts';
export {
  actorOf,
  type Caller,
  type Hold,
  type HoldRequest,
  HoldTaken,
  type Payer,
  type Release,
} from './paying/payer.ts';
export { Payers } from './paying/payers.ts';
export { type Audience, CallLimits, Paying } from './paying/paying.ts';
export type { Receipt } from './paying/purchase.ts';
export { Refusals } from './paying/refusals.ts';
export type { BytesClient } from './paying/relay.ts';
export { EndpointHealth } from './routing/endpoint-health.ts';
export { defaultEndpoints } from './routing/route.ts';
export { keyIdOf, type Sealed, Secrets } from './secrets.ts';
export { StorageRoom } from './storage-room.ts';
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
export {
  type CreatedTopup,
  CreateTopup,
  CreateTopupHandler,
  newTopupId,
  noMethod,
  TOPUP_ID_LENGTH,
} from './topups/create-topup.ts';
export { ExchangeRates, type Rate } from './topups/exchange-rates.ts';
export { CARD, type OfferedMethod, OfferedPayments } from './topups/offered-payments.ts';
export {
  type BackendPayment,
  type PaymentBackend,
  PaymentBackends,
  type PaymentRequest,
  type RequestedPayment,
  type WebHook,
} from './topups/payment-backend.ts';
export { receivedIn } from './topups/received.ts';
export { TopupHints } from './topups/topup-hints.ts';
export { TopupPayments } from './topups/topup-payments.ts';
export { cut, scrubbed } from './words.ts';
