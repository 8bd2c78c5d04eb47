/** Chats whose bodies are encrypted for an enclave: how an enclave is called, and what is visible of its response. */
import type { Usage } from '#domain';
import { UpstreamError } from '../errors.ts';

export interface PrivateChatCall {
  /** Path of the enclave at its provider; empty if the provider is a single enclave. */
  readonly enclave: string;
  /** Lets the enclave decrypt the body. 64 hexadecimal digits: the protocol's `Ehbp-Encapsulated-Key`. */
  readonly encapsulatedKey: string;
  /** The response should be a stream. */
  readonly stream: boolean;
  /** Ciphertext as it arrives. Read at most once. */
  readonly body: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/** A chunk of a response. `frameSizes` has the maximum number of text bytes in each frame that starts in the chunk. */
export interface EncryptedChunk {
  readonly bytes: Uint8Array;
  readonly frameSizes: readonly number[];
  /** Bytes of the last frame that have not arrived yet. */
  readonly missingBytes: number;
}

/** What a client needs to decrypt a response. */
export interface EncryptedResponseHead {
  readonly mediaType: 'text/event-stream' | 'application/json';
  /** The protocol's `Ehbp-Response-Nonce`, 64 hexadecimal digits. */
  readonly nonce: string;
  /** The usage as the enclave sent it before the response, if it did. */
  readonly usageText: string | undefined;
}

/** A response that only its client can decrypt. */
export interface EncryptedResponse {
  readonly head: EncryptedResponseHead;
  /** Can be read once; throws an UpstreamError if the response is interrupted, even in the middle of a frame. */
  readonly chunks: AsyncIterable<EncryptedChunk>;
  /** Usage that the enclave reported before the response, or after it once the response has ended. */
  usage(): Usage | undefined;
  /** The usage as the enclave sent it after the response, if it did. */
  getTrailer(): string | undefined;
  vendorId(): string | undefined;
}

/**
 * An enclave has rejected a request. The error is encrypted for the client, or requests that the client fetch the key
 * of the enclave again.
 */
export class EncryptedErrorResponse extends UpstreamError {
  constructor(
    failure: UpstreamError,
    readonly head: { readonly status: number; readonly mediaType: string; readonly nonce: string | undefined },
    readonly body: Uint8Array,
  ) {
    super(failure.code, failure.message, { ...failure });
  }

  /** The enclave does not have the key for which the request was encrypted. */
  get isKeyMismatch(): boolean {
    return this.head.nonce === undefined;
  }
}
