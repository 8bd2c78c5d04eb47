/** The port to providers: what they can do, how they are called, and what they return. Adapters: `libs/connectors`. */
import type { Capability, ChatProtocol, ModelRules } from '#catalogue';
import type { Usage } from '#domain';
import type { Hold } from '../billing/payer.ts';
import type { ReportedBill } from '../billing/reported-bill.ts';
import type { CallResult } from '../billing/upstream-call.ts';
import type { DataCall, DataResponse } from './data-calls.ts';
import type {
  GeneratedImages,
  ImageCall,
  SpeechAudio,
  SpeechCall,
  Transcript,
  TranscriptionCall,
  VideoProvider,
} from './media-calls.ts';
import type { EncryptedResponse, PrivateChatCall } from './private-calls.ts';
import type { NativeSearch, SearchQuery, SearchStatus, WebSearchResponse } from './web-search.ts';

export type { Capability, ChatProtocol, ModelRules };

/**
 * The calls that a provider supports. Each makes one call, and resolves with the first byte of a stream or else with
 * the complete response.
 * @throws UpstreamError if there is no successful response
 */
export interface Provider {
  chat?(call: ChatCall): Promise<Completion | CompletionStream>;
  /** Calls the provider with OpenAI's Responses protocol. */
  responses?(call: ChatCall): Promise<Completion | CompletionStream>;
  embeddings?(call: EmbeddingCall): Promise<EmbeddingsResponse>;
  search?(query: SearchQuery): Promise<WebSearchResponse>;
  images?(call: ImageCall): Promise<GeneratedImages>;
  readonly videos?: VideoProvider;
  /** Resolves with the first bytes. */
  speech?(call: SpeechCall): Promise<SpeechAudio>;
  transcription?(call: TranscriptionCall): Promise<Transcript>;
  /** Resolves with a complete JSON response, or with the first bytes of a file. */
  data?(call: DataCall): Promise<DataResponse>;
  /** Resolves with the head of the response. @throws EncryptedErrorResponse if the enclave rejects the request */
  privateChat?(call: PrivateChatCall): Promise<EncryptedResponse>;
  /** Returns the attestation of an enclave and its key, as the enclave sends it: a JSON object. */
  attestation?(enclave: string, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Makes a free call that requires a valid key; undefined if the provider has none.
   * @throws UpstreamError with `isCredentialRejected` if the provider rejects the key, another one if this is unknown
   */
  checkKey?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /**
   * Returns the pages of the provider's list of models in its own format; undefined if it has no such list. The call is
   * free.
   */
  listModels?: ((signal: AbortSignal) => Promise<readonly unknown[]>) | undefined;
  close(): Promise<void>;
}

export abstract class ProviderRegistry {
  /**
   * Returns one capability of a provider, for a caller with a hold.
   * @param upstream slug of the provider
   * @throws UpstreamError if the provider is not available here or lacks the capability
   */
  abstract get<C extends Capability>(hold: Hold, upstream: string, capability: C): NonNullable<Provider[C]>;

  /**
   * Returns the call that fetches the attestation of a provider's enclaves. The call costs nothing.
   * @throws UpstreamError if the provider is not available here or has no enclaves
   */
  abstract getAttestation(upstream: string): NonNullable<Provider['attestation']>;
}

/** The identity of a completion, which replaces the provider's. */
export interface CompletionIdentity {
  readonly id: string;
  readonly model: string;
  readonly provider: string;
  /** Unix time in seconds; the same in every event of a stream. */
  readonly created: number;
}

export interface ChatCall {
  /** The protocol of the request and its response. */
  readonly protocol: ChatProtocol;
  /** The protocols that the endpoint supports; `protocol` may not be one of them. */
  readonly protocols: readonly ChatProtocol[];
  /** The request in OpenAI's format for this protocol, with the provider's name of the model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** What the model accepts; without rules, what its protocol allows. */
  readonly modelRules?: ModelRules;
  readonly stream: boolean;
  /** Content may be cached for an hour: the endpoint has a price for it. Else all caches have the default lifetime. */
  readonly cachesForHour?: boolean;
  /** The response must not contain reasoning text, whatever the provider makes of the request. */
  readonly withoutReasoning: boolean;
  readonly identity: CompletionIdentity;
  /** The provider may search the web; only for endpoints with a fee for it. */
  readonly search?: NativeSearch | undefined;
  /** Continues this turn of the model, which the provider has paused. */
  readonly pausedResponse?: PausedResponse | undefined;
  /**
   * Called when the request is about to be sent: from then on the model may reason and generate.
   * @param maxReasoningTokens reasoning tokens that the request permits at most; undefined if only its output limit
   *   limits them
   */
  onSend?(maxReasoningTokens: number | undefined): void;
  readonly signal: AbortSignal;
}

/**
 * A turn of the model that its provider has paused while it searched. A further call continues the turn: the client
 * gets one completion, and each call is billed.
 */
export interface PausedResponse {
  /** The output of all calls for the turn, in the format of the provider. Only its connector reads it. */
  readonly content: readonly unknown[];
  /** Number of searches that have ended. */
  readonly searches: number;
  /** Whether a search has started that has not ended. */
  readonly isSearching: boolean;
}

/** The caller's sampling settings as they were sent to the provider; null for a setting that was not sent. */
export type AppliedSampling = Readonly<Partial<Record<'temperature' | 'top_p', number | null>>>;

/**
 * A non-streaming completion and the usage that the provider reported. The body is OpenAI's `chat.completion` with our
 * identity, or a `response` with the provider's identity.
 */
export interface Completion {
  readonly kind: 'complete';
  readonly protocol: ChatProtocol;
  readonly body: Readonly<Record<string, unknown>>;
  readonly usage: Usage | undefined;
  /** The provider's id of its response, which identifies the line of its invoice. */
  vendorId(): string | undefined;
  readonly reportedBill?: ReportedBill;
  /** All generated text, for counting tokens that the provider did not report. */
  getDeliveredText(): string;
  /** Set if it differs from the request. */
  readonly sampling?: AppliedSampling;
  /** The web searches of the provider, and how many of them it invoices. */
  readonly searches?: { readonly statuses: readonly SearchStatus[]; readonly invoiced: number };
  /** Set if a further call can continue the completion. The body of that call's completion includes this one. */
  readonly pausedResponse?: PausedResponse;
}

/** Returns what billing needs to know about the call of a non-streaming completion. */
export function toCallResult(completion: Completion): CallResult {
  return {
    usage: completion.usage,
    getDeliveredText: () => completion.getDeliveredText(),
    vendorId: completion.vendorId(),
    reportedBill: completion.reportedBill,
  };
}

/**
 * Receives complete server-sent events: OpenAI's `chat.completion.chunk` events with our identity, without the usage
 * chunk and the end marker, or those events of a Response that contain its output and its end. `search` is a search of
 * the provider that happened after these events.
 * @returns a promise if the buffer is full; it resolves when more can be written
 */
export type SseEventSink = (events: Uint8Array, search?: SearchStatus) => Promise<void> | undefined;

/** A completion while it is generated. */
export interface CompletionStream {
  readonly kind: 'stream';
  readonly protocol: ChatProtocol;
  /**
   * Forwards the events as they arrive, from the first one on, and resolves when all of them have been accepted. Can be
   * called once.
   * @throws UpstreamError if the stream is interrupted
   */
  pipeTo(receiver: SseEventSink): Promise<void>;
  /** Available once the stream has ended, with or without a failure. */
  usage(): Usage | undefined;
  /** The usage of the input, if the provider has reported it by the first event. Its output is preliminary. */
  getInputUsage?(): Usage | undefined;
  /** The provider's id of its response; undefined before the provider has sent it. */
  vendorId(): string | undefined;
  /** Available like the usage. */
  reportedBill?(): ReportedBill;
  /** All generated text, including what was not forwarded. */
  getDeliveredText(): string;
  /** Upper bound of the tokens in the generated text. Cheap enough to be called for every event. */
  getMaxGeneratedTokens(): number;
  /** Whether any generated text was forwarded. */
  hasForwarded(): boolean;
  /**
   * Returns how long no visible output arrived while the stream was being read, in milliseconds. The model may have
   * reasoned in that time.
   * @param graceMs time to the first byte without reasoning, which does not count
   */
  getIdleMs(graceMs: number): number;
  /** Returns how long nothing was read because the receiver was full, in milliseconds. */
  getPausedMs(): number;
  /** Reasoning tokens that the sent request permits at most; undefined if only its output limit limits them. */
  readonly maxReasoningTokens?: number;
  /** Set if it differs from the request. */
  readonly sampling?: AppliedSampling;
  /** Number of web searches that the provider invoices, if it was allowed to search. */
  countInvoicedSearches?(): number;
  /**
   * Returns the turn that a further call can continue. Available once the stream has ended; undefined if the completion
   * has ended. The events of a paused turn have no finish reason, and those of the further call are their continuation.
   */
  getPausedResponse?(): PausedResponse | undefined;
}

export interface EmbeddingCall {
  /** The request in OpenAI's format, with the provider's name of the model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Number of requested vectors. */
  readonly count: number;
  readonly signal: AbortSignal;
}

export interface EmbeddingsResponse {
  /** OpenAI's list of embeddings as the provider sent it, in JSON. The vectors are forwarded unchanged. */
  readonly data: string;
  readonly usage: Usage | undefined;
  /** The provider's id of its response, if it has one; identifies the line of its invoice. */
  readonly vendorId: string | undefined;
  readonly reportedBill?: ReportedBill;
}
