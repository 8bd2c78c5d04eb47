import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes, randomInt } from 'node:crypto';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62²² > 2¹³⁰. Clients check for exactly this length. */
const KEY_LENGTH = 22;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A secret as an event keeps it: AES-256-GCM, and which key seals it. */
export interface SealedSecretBox {
  readonly key: string;
  readonly box: string;
}

/** A key of its own for each purpose, derived from a master key. */
function deriveKey(masterKey: Buffer, purpose: string, bytes = 32): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', purpose, bytes));
}

/** Names a master key without telling it. */
export function toMasterKeyId(masterKey: Buffer): string {
  return deriveKey(masterKey, 'countinghouse key id', 6).toString('hex');
}

interface RingKey {
  readonly id: string;
  readonly masterKey: Buffer;
  readonly hashKey: string;
  readonly sealKey: Buffer;
}

function deriveRingKey(masterKey: Buffer): RingKey {
  const hashKey = deriveKey(masterKey, 'countinghouse key hash').toString('hex');
  return { id: toMasterKeyId(masterKey), masterKey, hashKey, sealKey: deriveKey(masterKey, 'countinghouse seal') };
}

/**
 * API keys: made, found again by a keyed hash, and sealed so that only this installation can show them. It has a ring of master
 * keys, so that they can be exchanged while it runs: what is new is sealed, signed and hashed under the first, and what was made
 * under any of them is opened and found.
 */
export class Secrets {
  private readonly keyRing: readonly [RingKey, ...RingKey[]];
  private readonly oldest: RingKey;

  /**
   * @param masterKey 32 random bytes, as each of the others
   * @param oldest of them the one that this installation has had for longest, whatever their order is
   */
  constructor(masterKey: Buffer, otherMasterKeys: readonly Buffer[] = [], oldest = toMasterKeyId(masterKey)) {
    this.keyRing = [deriveRingKey(masterKey), ...otherMasterKeys.map(deriveRingKey)];
    this.oldest = this.keyRing.find(({ id }) => id === oldest) ?? this.keyRing[0];
  }

  /** Names the key that what is new is sealed with. */
  get keyId(): string {
    return this.keyRing[0].id;
  }

  /** A key of its own for each purpose. What was made with it must be checked with all of `derivePurposeKeys`. */
  derivePurposeKey(purpose: string, bytes = 32): Buffer {
    return deriveKey(this.keyRing[0].masterKey, purpose, bytes);
  }

  /** The same of each key in the ring, that of `derivePurposeKey` first. */
  derivePurposeKeys(purpose: string, bytes = 32): readonly Buffer[] {
    return this.keyRing.map(({ masterKey }) => deriveKey(masterKey, purpose, bytes));
  }

  generateApiKey(): string {
    return `sk-${generateBase62(KEY_LENGTH)}`;
  }

  /** Only ever compared with others of its kind, so a key in front is as good as an HMAC, at a fifth of its cost. */
  hash(secret: string): string {
    return hashWithKey(secret, this.keyRing[0]);
  }

  /** What `hash` may have been when it was kept, what it is now first. */
  hashWithAllKeys(secret: string): readonly string[] {
    return this.keyRing.map((key) => hashWithKey(secret, key));
  }

  /**
   * The hash by which processes find out that they mean the same thing. They all make it alike, also while some have a new key
   * already and others have not: under the oldest.
   */
  hashWithOldestKey(text: string): string {
    return hashWithKey(text, this.oldest);
  }

  seal(secret: string): SealedSecretBox {
    return { key: this.keyId, box: this.sealBytes(Buffer.from(secret)).toString('base64') };
  }

  /** @throws Error when it was sealed with a master key that is not in the ring, or was changed */
  open({ key, box }: SealedSecretBox): string {
    const match = this.keyRing.find(({ id }) => id === key);
    if (!match) throw new Error(`a secret is sealed with the master key ${key}, which is not among MASTER_KEY`);
    return unseal(Buffer.from(box, 'base64'), match).toString();
  }

  /** Seals what is too large for text. */
  sealBytes(bytes: Buffer): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.keyRing[0].sealKey, nonce);
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws Error when it was sealed with a master key that is not in the ring, or was changed */
  openBytes(box: Buffer): Buffer {
    let lastError: unknown;
    for (const key of this.keyRing) {
      try {
        return unseal(box, key);
      } catch (error) {
        lastError = error;
      }
    }
    throw lastError;
  }
}

function hashWithKey(text: string, { hashKey }: RingKey): string {
  return hash('sha256', hashKey + text, 'base64url');
}

function unseal(box: Buffer, { sealKey }: RingKey): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', sealKey, box.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(box.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(box.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}

/** Random text without bias: `randomInt` draws again where a byte would favour some letters. */
export function generateBase62(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('');
}
