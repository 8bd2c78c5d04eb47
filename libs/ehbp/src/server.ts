/** The side that answers: an enclave. */
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
 * Begins to read an encrypted request.
 * @param encapsulatedKey the header `Ehbp-Encapsulated-Key`
 * @throws EhbpError when it is no key
 */
export async function openRequest(keys: EnclaveKeys, encapsulatedKey: string): Promise<OpenedRequest> {
  const encapsulated = parseHeaderBytes(encapsulatedKey, ENCAPSULATED_KEY_HEADER);
  try {
    const context = await SUITE.SetupRecipient(keys.keyPair, encapsulated, { info: REQUEST_INFO });
    return new OpenedRequest(context, encapsulated);
  } catch {
    throw new EhbpError('malformed', `${ENCAPSULATED_KEY_HEADER} is no public key of X25519`);
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
   * Yields the plaintext of each frame. Whether a frame is from the client is known frame by frame, whether all have come never: the
   * plaintext must say it.
   * @param chunks the request's body, in pieces of any size
   * @throws EhbpError; `unauthentic` for the first frame means most likely that the client has another key than ours
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
   * Begins an answer, of which there is one for each request.
   * @throws Error before a frame has been opened: until then the encapsulated key may be of someone who stands between, and so would the
   * answer be
   */
  async sealResponse(): Promise<ResponseSealer> {
    if (!this.isAuthentic) throw new Error('no answer is encrypted before the request has been opened');
    const secret = await this.context.Export(RESPONSE_LABEL, KEY_BYTES);
    const nonce = randomBytes(KEY_BYTES);
    return new ResponseSealer(toHex(nonce), deriveResponseKeys(secret, this.encapsulatedKey, nonce));
  }

  private async openFrame(ciphertext: Uint8Array): Promise<Uint8Array> {
    try {
      return await this.context.Open(ciphertext);
    } catch {
      throw new EhbpError('unauthentic', 'a frame of the request does not open with this key');
    }
  }
}
