/** The client side of the protocol. */
import { encodeFrame, splitIntoFrames } from './frames.ts';
import {
  EhbpError,
  KEY_BYTES,
  parseHeaderBytes,
  REQUEST_INFO,
  RESPONSE_LABEL,
  RESPONSE_NONCE_HEADER,
  SUITE,
  toHex,
} from './protocol.ts';
import { deriveResponseKeys, ResponseOpener } from './response.ts';

/** An encrypted request for one attempt. A retry must be encrypted again. */
export interface SealedRequest {
  /** The value of the header `Ehbp-Encapsulated-Key`. */
  readonly encapsulatedKey: string;
  /** The body, to be sent chunked and without a `Content-Length`. */
  readonly frames: readonly Uint8Array[];
  /**
   * Starts to decrypt the response.
   * @param nonce the response header `Ehbp-Response-Nonce`
   * @throws EhbpError if the header is not a valid nonce
   */
  openResponse(nonce: string): ResponseOpener;
}

/**
 * Encrypts the body of a request for an enclave.
 * @param publicKey the public key of the enclave, 32 bytes
 * @param body not empty: the protocol encrypts neither a request without a body nor its response
 * @throws EhbpError if the key is not a valid public key; RangeError if the body is empty
 */
export async function sealRequest(publicKey: Uint8Array, body: Uint8Array): Promise<SealedRequest> {
  if (body.length === 0) throw new RangeError('a request without a body cannot be encrypted');
  const { encapsulatedSecret: encapsulated, ctx } = await setUpSender(publicKey);
  const secret = await ctx.Export(RESPONSE_LABEL, KEY_BYTES);
  const frames: Uint8Array[] = [];
  for (const chunk of splitIntoFrames(body)) frames.push(encodeFrame(await ctx.Seal(chunk)));
  return {
    encapsulatedKey: toHex(encapsulated),
    frames,
    openResponse: (nonce) =>
      new ResponseOpener(deriveResponseKeys(secret, encapsulated, parseHeaderBytes(nonce, RESPONSE_NONCE_HEADER))),
  };
}

async function setUpSender(publicKey: Uint8Array) {
  try {
    return await SUITE.SetupSender(await SUITE.DeserializePublicKey(publicKey), { info: REQUEST_INFO });
  } catch {
    throw new EhbpError('malformed', 'the key of the enclave is not an X25519 public key');
  }
}
