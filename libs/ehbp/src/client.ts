/** The side that asks. */
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

/** An encrypted request, for one try: what is sent again must be encrypted again. */
export interface SealedRequest {
  /** The value of the header `Ehbp-Encapsulated-Key`. */
  readonly encapsulatedKey: string;
  /** The body, to be sent chunked, without a length. */
  readonly frames: readonly Uint8Array[];
  /**
   * @param nonce the answer's header `Ehbp-Response-Nonce`
   * @throws EhbpError when it is none
   */
  openResponse(nonce: string): ResponseOpener;
}

/**
 * Encrypts the body of a request for an enclave.
 * @param publicKey the enclave's key, 32 bytes
 * @param body not empty: the protocol encrypts no request without a body, nor its answer
 * @throws EhbpError when the key is none
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
    throw new EhbpError('malformed', 'the key of the enclave is no public key of X25519');
  }
}
