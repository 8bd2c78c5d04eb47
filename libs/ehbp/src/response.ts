/** Encryption of responses, with keys that are derived from the shared secret of the request. */
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { type BodyChunks, encodeFrame, FrameReader, splitIntoFrames, TAG_BYTES } from './frames.ts';
import { EhbpError, KEY_BYTES } from './protocol.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;

export interface ResponseKeys {
  /** A KeyObject, because creating a cipher from it is five times as fast as from its bytes. */
  readonly key: KeyObject;
  readonly baseNonce: Uint8Array;
}

/** @param secret exported from the HPKE context of the request */
export function deriveResponseKeys(secret: Uint8Array, encapsulatedKey: Uint8Array, nonce: Uint8Array): ResponseKeys {
  const salt = Buffer.concat([encapsulatedKey, nonce]);
  const expand = (info: string, bytes: number) => new Uint8Array(hkdfSync('sha256', secret, salt, info, bytes));
  return { key: createSecretKey(expand('key', KEY_BYTES)), baseNonce: expand('nonce', NONCE_BYTES) };
}

/** Returns the nonce of a frame: the base nonce XOR the frame number as a big-endian integer. */
function toFrameNonce({ baseNonce }: ResponseKeys, frame: number): Uint8Array {
  const nonce = Buffer.from(baseNonce);
  for (let at = NONCE_BYTES - 1, rest = frame; rest > 0; at--, rest = Math.floor(rest / 256)) {
    nonce[at] = (nonce[at] as number) ^ (rest % 256);
  }
  return nonce;
}

/** Encrypts one response. Not reusable, because the frames of each response are numbered from zero. */
export class ResponseSealer {
  /** The value of the response header `Ehbp-Response-Nonce`. */
  readonly nonce: string;
  private readonly keys: ResponseKeys;
  private frames = 0;

  constructor(nonce: string, keys: ResponseKeys) {
    this.nonce = nonce;
    this.keys = keys;
  }

  /**
   * Encrypts a plaintext. @returns one frame, several frames for more than 64 KiB, or no bytes for an empty plaintext
   */
  seal(plaintext: Uint8Array): Uint8Array {
    if (plaintext.length === 0) return plaintext;
    const frames = Array.from(splitIntoFrames(plaintext), (chunk) => this.sealFrame(chunk));
    return frames.length === 1 ? (frames[0] as Uint8Array) : Buffer.concat(frames);
  }

  private sealFrame(chunk: Uint8Array): Uint8Array {
    const cipher = createCipheriv(ALGORITHM, this.keys.key, toFrameNonce(this.keys, this.frames++));
    return encodeFrame(cipher.update(chunk), cipher.final(), cipher.getAuthTag());
  }
}

/** Decrypts a response. */
export class ResponseOpener {
  private readonly keys: ResponseKeys;

  constructor(keys: ResponseKeys) {
    this.keys = keys;
  }

  /**
   * Yields the plaintext of each frame as soon as the frame is complete and authenticated. A truncation between two
   * frames is not detected, so the plaintext must show its own end.
   * @param chunks the body of the response, in chunks of any size
   * @throws EhbpError if the body violates the protocol, ends within a frame, or has a frame that is not authentic
   */
  async *open(chunks: BodyChunks): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = new FrameReader();
    let frames = 0;
    for await (const chunk of chunks) {
      for (const ciphertext of reader.add(chunk)) {
        const plaintext = this.openFrame(ciphertext, frames++);
        if (plaintext.length > 0) yield plaintext;
      }
    }
    reader.end();
  }

  private openFrame(ciphertext: Uint8Array, frame: number): Uint8Array {
    const end = ciphertext.length - TAG_BYTES;
    const decipher = createDecipheriv(ALGORITHM, this.keys.key, toFrameNonce(this.keys, frame));
    decipher.setAuthTag(ciphertext.subarray(end));
    const plaintext = decipher.update(ciphertext.subarray(0, end));
    try {
      decipher.final();
    } catch {
      throw new EhbpError('unauthentic', 'a frame of the response is not what the enclave encrypted');
    }
    return plaintext;
  }
}
