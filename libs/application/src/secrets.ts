import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes, randomInt } from 'node:crypto';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62²² > 2¹³⁰. Clients check for exactly this length. */
const KEY_LENGTH = 22;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A secret as an event keeps it: AES-256-GCM, and which key seals it. */
export interface Sealed {
  readonly key: string;
  readonly box: string;
}

/** API keys: made, found again by a keyed hash, and sealed so that only this installation can show them. */
export class Secrets {
  private readonly hashKey: string;
  private readonly sealKey: Buffer;
  /** Names the master key without telling it. */
  readonly keyId: string;

  /** @param masterKey 32 random bytes */
  constructor(private readonly masterKey: Buffer) {
    this.hashKey = this.keyFor('countinghouse key hash').toString('hex');
    this.sealKey = this.keyFor('countinghouse seal');
    this.keyId = this.keyFor('countinghouse key id', 6).toString('hex');
  }

  /** A key of its own for each purpose, derived from the master key. */
  keyFor(purpose: string, bytes = 32): Buffer {
    return Buffer.from(hkdfSync('sha256', this.masterKey, '', purpose, bytes));
  }

  mintApiKey(): string {
    return `sk-${randomBase62(KEY_LENGTH)}`;
  }

  /** Only ever compared with others of its kind, so a key in front is as good as an HMAC, at a fifth of its cost. */
  hash(secret: string): string {
    return hash('sha256', this.hashKey + secret, 'base64url');
  }

  seal(secret: string): Sealed {
    return { key: this.keyId, box: this.sealBytes(Buffer.from(secret)).toString('base64') };
  }

  /** @throws Error when it was sealed with another master key, or was changed */
  open({ key, box }: Sealed): string {
    if (key !== this.keyId) throw new Error(`a secret is sealed with the master key ${key}, this is ${this.keyId}`);
    return this.openBytes(Buffer.from(box, 'base64')).toString();
  }

  /** Seals what is too large for text. */
  sealBytes(bytes: Buffer): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.sealKey, nonce);
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws Error when it was sealed with another master key, or was changed */
  openBytes(box: Buffer): Buffer {
    const decipher = createDecipheriv('aes-256-gcm', this.sealKey, box.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(box.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(box.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  }
}

/** Random text without bias: `randomInt` draws again where a byte would favour some letters. */
export function randomBase62(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('');
}
