/** The server side of the protocol: an enclave. */
import { randomBytes } from 'node:crypto';
import type { RecipientContext } from 'hpke';
import { type BodyChunks, FrameReader } from './frames.ts';
import type { EnclaveKeys } from './keys.ts';
import {
  EhbpError,
  ENCAPSULATED_KEY_HEADER,
  KEY_BYTES,
  parseHeaderBytes,
  REQUEST_INFO,
  RESPONSE_LABEL,
  SUITE,
  toHex,
} from './protocol.ts';
import { deriveResponseKeys, ResponseSealer } from './response.ts';

/**
 * Starts to decrypt a request.
 * @param encapsulatedKey the header `Ehbp-Encapsulated-Key`
 * @throws EhbpError if the header is not a valid key
 */
export async function openRequest(keys: EnclaveKeys, encapsulatedKey: string): Promise<OpenedRequest> {
  const encapsulated = parseHeaderBytes(encapsulatedKey, ENCAPSULATED_KEY_HEADER);
  try {
    const context = await SUITE.SetupRecipient(keys.keyPair, encapsulated, { info: REQUEST_INFO });
    return new OpenedRequest(context, encapsulated);
  } catch {
    throw new EhbpError('malformed', `${ENCAPSULATED_KEY_HEADER} is not an X25519 public key`);
  }
}

export class OpenedRequest {
  private readonly context: RecipientContext;
  private readonly encapsulatedKey: Uint8Array;
  private isAuthentic = false;

  constructor(context: RecipientContext, encapsulatedKey: Uint8Array) {
    this.context = context;
    this.encapsulatedKey = encapsulatedKey;
  }

  /**
   * Yields the plaintext of each frame. Every frame is authenticated. A truncation between two frames is not
   * detected, so the plaintext must show its own end.
   * @param chunks the body of the request, in chunks of any size
   * @throws EhbpError if the body violates the protocol, is empty, ends within a frame, or has a frame that is not
   *   authentic. `unauthentic` for the first frame usually means that the client used another public key
   */
  async *open(chunks: BodyChunks): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = new FrameReader();
    for await (const chunk of chunks) {
      for (const ciphertext of reader.add(chunk)) {
        const plaintext = await this.openFrame(ciphertext);
        this.isAuthentic = true;
        if (plaintext.length > 0) yield plaintext;
      }
    }
    reader.end();
    if (!this.isAuthentic) throw new EhbpError('truncated', 'the body has no frame');
  }

  /**
   * Starts the response. Call it once for each request.
   * @throws Error if no frame has been opened yet: until then the encapsulated key may belong to an attacker on the
   *   connection, who could then decrypt the response
   */
  async sealResponse(): Promise<ResponseSealer> {
    if (!this.isAuthentic) throw new Error('no response is encrypted before the request has been opened');
    const secret = await this.context.Export(RESPONSE_LABEL, KEY_BYTES);
    const nonce = randomBytes(KEY_BYTES);
    return new ResponseSealer(toHex(nonce), deriveResponseKeys(secret, this.encapsulatedKey, nonce));
  }

  private async openFrame(ciphertext: Uint8Array): Promise<Uint8Array> {
    try {
      return await this.context.Open(ciphertext);
    } catch {
      throw new EhbpError('unauthentic', 'a frame of the request cannot be decrypted with this key');
    }
  }
}
