/** The port through which vendors are reached: what they can do, how they are called, and what they answer. Adapters: `libs/connectors`. */
import type { Capability, ChatProtocol } from '#catalogue';
import type { Usage } from '#domain';
import type { Hold } from '../billing/payer.ts';
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

export type { Capability, ChatProtocol };

/**
 * What a vendor can do. Each makes one call and resolves when the first byte of the answer is there, or else all of it.
 * @throws UpstreamError when there is no answer
 */
export interface Provider {
  chat?(call: ChatCall): Promise<Completion | CompletionStream>;
  /** Calls the vendor with Responses. */
  responses?(call: ChatCall): Promise<Completion | CompletionStream>;
  embeddings?(call: EmbeddingCall): Promise<EmbeddingsResponse>;
  search?(query: SearchQuery): Promise<WebSearchResponse>;
  images?(call: ImageCall): Promise<GeneratedImages>;
  readonly videos?: VideoProvider;
  /** Resolves with the first bytes. */
  speech?(call: SpeechCall): Promise<SpeechAudio>;
  transcription?(call: TranscriptionCall): Promise<Transcript>;
  /** Resolves with all of an answer, or with the first bytes of a file. */
  data?(call: DataCall): Promise<DataResponse>;
  /** Resolves with the head of the answer. @throws EncryptedErrorResponse */
  privateChat?(call: PrivateChatCall): Promise<EncryptedResponse>;
  /** The evidence of what an enclave is, and of its key, as it gives it: a JSON object. */
  attestation?(enclave: string, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

export abstract class ProviderRegistry {
  /**
   * What a vendor can do, for a caller with a hold.
   * @param upstream the vendor's slug
   * @throws UpstreamError when it is not available here
   */
  abstract get<C extends Capability>(hold: Hold, upstream: string, capability: C): NonNullable<Provider[C]>;

  /**
   * How the enclaves of a vendor are asked for their evidence, which costs nothing.
   * @throws UpstreamError when it is not available here
   */
  abstract getAttestation(upstream: string): NonNullable<Provider['attestation']>;
}

/** The identity of the answer, in place of the upstream's. */
export interface CompletionIdentity {
  readonly id: string;
  readonly model: string;
  readonly provider: string;
  /** Unix seconds: the same in every event of a stream. */
  readonly created: number;
}

export interface ChatCall {
  /** The protocol of the request and its answer. */
  readonly protocol: ChatProtocol;
  /** The protocols of the endpoint, which may differ. */
  readonly protocols: readonly ChatProtocol[];
  /** The request in OpenAI's shape for this language, with the upstream's name of the model. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly stream: boolean;
  /** No text of the model's reasoning is to be in the answer, whatever the upstream makes of the request. */
  readonly withoutReasoning: boolean;
  readonly identity: CompletionIdentity;
  /** The upstream is to search the web; only for endpoints that have a fee for it. */
  readonly search?: NativeSearch | undefined;
  readonly signal: AbortSignal;
}

/** What an upstream was told of the caller's settings; null for what it was not told. */
export type AppliedSampling = Readonly<Partial<Record<'temperature' | 'top_p', number | null>>>;

/**
 * A complete answer, and the usage that the upstream reported: OpenAI's `chat.completion` with our identity, or a
 * `response` with the upstream's.
 */
export interface Completion {
  readonly kind: 'complete';
  readonly protocol: ChatProtocol;
  readonly body: Readonly<Record<string, unknown>>;
  readonly usage: Usage | undefined;
  /** What the upstream calls the answer, by which a line of its invoice can be found. */
  vendorId(): string | undefined;
  /** All text that was generated, for counting tokens that were not reported. */
  getDeliveredText(): string;
  /** Where it is not what the request says. */
  readonly sampling?: AppliedSampling;
  /** What the upstream has searched for, and how many of those searches it invoices. */
  readonly searches?: { readonly statuses: readonly SearchStatus[]; readonly invoiced: number };
}

/** What is known of the call that a whole answer comes from. */
export function toCallResult(completion: Completion): CallResult {
  return {
    usage: completion.usage,
    getDeliveredText: () => completion.getDeliveredText(),
    vendorId: completion.vendorId(),
  };
}

/**
 * Takes server-sent events, whole ones: in OpenAI's `chat.completion.chunk` shape with our identity, without the usage
 * chunk and the end marker; or the events of a response that have its output, and its end. Takes also a search of the
 * upstream's that happened behind them. Returns a promise when it has no room for more until that resolves.
 */
export type SseEventSink = (events: Uint8Array, search?: SearchStatus) => Promise<void> | undefined;

/** An answer as it is generated. */
export interface CompletionStream {
  readonly kind: 'stream';
  readonly protocol: ChatProtocol;
  /**
   * Passes the events on as they come, from the first one, and resolves when all have been taken. May be called once.
   * @throws UpstreamError when the answer breaks off
   */
  pipeTo(receiver: SseEventSink): Promise<void>;
  /** Once the events have ended, also by a failure. */
  usage(): Usage | undefined;
  /** What the upstream calls the answer; undefined before it has said so. */
  vendorId(): string | undefined;
  /** All text that was generated, also what was not passed on. */
  getDeliveredText(): string;
  /** How many tokens that has at most: cheap enough to be asked with every event. */
  getMaxGeneratedTokens(): number;
  /** Whether any of it was passed on. */
  hasForwarded(): boolean;
  /**
   * How long nothing came that can be seen, though it was asked for and read: a model may have thought meanwhile.
   * @param graceMs so long the first byte takes though nothing is thought
   */
  getIdleMs(graceMs: number): number;
  /** Where it is not what the request says. */
  readonly sampling?: AppliedSampling;
  /** How many searches the upstream invoices, where it was to search. */
  countInvoicedSearches?(): number;
}

export interface EmbeddingCall {
  /** The request in OpenAI's shape, with the upstream's name of the model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** How many vectors are wanted. */
  readonly count: number;
  readonly signal: AbortSignal;
}

export interface EmbeddingsResponse {
  /** OpenAI's list of embeddings as the upstream wrote it, in JSON: the vectors are passed on untouched. */
  readonly data: string;
  readonly usage: Usage | undefined;
  /** What the upstream calls the answer, where it does: by it a line of its invoice can be found. */
  readonly vendorId: string | undefined;
}
