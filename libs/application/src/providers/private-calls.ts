/** Chats whose bodies are encrypted for an enclave: how one is called, and what can be seen of its answer without reading it. */
import type { Usage } from '#domain';
import { UpstreamError } from '../errors.ts';

export interface PrivateChatCall {
  /** The path of the enclave at its vendor; empty where the vendor is one enclave. */
  readonly enclave: string;
  /** What the enclave opens the body with: 64 hexadecimal digits, the protocol's `Ehbp-Encapsulated-Key`. */
  readonly encapsulatedKey: string;
  /** The answer is to be a stream. */
  readonly stream: boolean;
  /** Ciphertext, as it comes. Read once, at most. */
  readonly body: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/** A part of an answer, and how many bytes of text are at most in each of the frames that begin in it. */
export interface EncryptedChunk {
  readonly bytes: Uint8Array;
  readonly frameSizes: readonly number[];
  /** How many bytes of the last frame are still to come. */
  readonly missingBytes: number;
}

/** What a client needs to open an answer. */
export interface EncryptedResponseHead {
  readonly mediaType: 'text/event-stream' | 'application/json';
  /** The protocol's `Ehbp-Response-Nonce`, 64 hexadecimal digits. */
  readonly nonce: string;
  /** The usage as the enclave wrote it before the answer, where it did. */
  readonly usageText: string | undefined;
}

/** An answer that only its client can read. */
export interface EncryptedResponse {
  readonly head: EncryptedResponseHead;
  /** May be read once. It throws an UpstreamError when it breaks off, also in the middle of a frame. */
  readonly chunks: AsyncIterable<EncryptedChunk>;
  /** As the enclave reported it, before the answer or, once that has ended, behind it. */
  usage(): Usage | undefined;
  /** The same as the enclave wrote it behind the answer. */
  getTrailer(): string | undefined;
  vendorId(): string | undefined;
}

/** An enclave has refused a request in words that are for its client alone, or that say to ask for its key again. */
export class EncryptedErrorResponse extends UpstreamError {
  constructor(
    failure: UpstreamError,
    readonly head: { readonly status: number; readonly mediaType: string; readonly nonce: string | undefined },
    readonly body: Uint8Array,
  ) {
    super(failure.code, failure.message, { ...failure });
  }

  /** It does not have the key that the request was encrypted for. */
  get isKeyMismatch(): boolean {
    return this.head.nonce === undefined;
  }
}
