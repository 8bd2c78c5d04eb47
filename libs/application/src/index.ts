export { OpenAccount, OpenAccountHandler, type OpenedAccount } from './accounts.ts';
export { Catalogues } from './catalogues.ts';
export type { ChatAnswer, ChatClient, Source, StreamedChat, WholeChat } from './chat/answers.ts';
export type { ChatBody } from './chat/body.ts';
export { ChatLimits, CompleteChat, CompleteChatHandler } from './chat/complete-chat.ts';
export type { Reasoning } from './chat/reasoning.ts';
export { boundInputTokens, countInputTokens, countTokens } from './chat/tokens.ts';
export {
  type AnswerIdentity,
  type ChatCall,
  ChatUpstreams,
  type EventReceiver,
  type Language,
  type StreamedAnswer,
  type WholeAnswer,
} from './chat/upstream.ts';
export { Clock, SystemClock } from './clock.ts';
export {
  CreateEmbeddings,
  CreateEmbeddingsHandler,
  type EmbeddingAnswer,
  type EmbeddingBody,
} from './embeddings/create-embeddings.ts';
export { type EmbeddingCall, type Embeddings, EmbeddingUpstreams } from './embeddings/upstream.ts';
export { type FailureCode, UnservableRequest, UpstreamFailure } from './failures.ts';
export { type Caller, type Hold, Holds, type HoldWish } from './holds.ts';
export {
  CreateKey,
  CreateKeyHandler,
  type KeyFields,
  RevokeKey,
  RevokeKeyHandler,
  UpdateKey,
  UpdateKeyHandler,
} from './keys.ts';
export { PaidCalls, type Receipt } from './paid-calls.ts';
export type { ResponsesBody } from './responses/body.ts';
export { type Conversation, Conversations, type StoredResponse, StoredResponses } from './responses/conversations.ts';
export type { Message, Thing } from './responses/items.ts';
export { NativeOutput } from './responses/native-output.ts';
export { LEAST_OUTPUT, LOGPROBS, wantsEncrypted } from './responses/native-request.ts';
export { type ChatDelta, type OutputItem, type ResponseEvent, ResponseOutput } from './responses/output.ts';
export { type ResponsesRequest, readResponsesRequest } from './responses/request.ts';
export { Pulses } from './routing/pulses.ts';
export { RunningTasks } from './running.ts';
export type { NativeSearch, SearchNote } from './search/searching.ts';
export { MAX_RESULT_CHARACTERS, type SearchResult, type SearchWish, WebSearch } from './search/web-search.ts';
export { type Sealed, Secrets } from './secrets.ts';
export { Accounts, openStreams, PriceLists, type Streams, Topups } from './streams.ts';
export {
  ExchangeRates,
  LIGHTNING_EXPIRY_SECONDS,
  type LightningInvoice,
  LightningNode,
  type LightningPayment,
  PAYMENT_METHODS,
  type PaymentMethod,
  type Rate,
  RequestInvoice,
  RequestInvoiceHandler,
  TopupPayments,
} from './topups.ts';
