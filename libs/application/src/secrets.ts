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
function derived(masterKey: Buffer, purpose: string, bytes = 32): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', purpose, bytes));
}

/** Names a master key without telling it. */
export function toMasterKeyId(masterKey: Buffer): string {
  return derived(masterKey, 'countinghouse key id', 6).toString('hex');
}

interface RingKey {
  readonly id: string;
  readonly masterKey: Buffer;
  readonly hashKey: string;
  readonly sealKey: Buffer;
}

function ringKey(masterKey: Buffer): RingKey {
  const hashKey = derived(masterKey, 'countinghouse key hash').toString('hex');
  return { id: toMasterKeyId(masterKey), masterKey, hashKey, sealKey: derived(masterKey, 'countinghouse seal') };
}

/**
 * API keys: made, found again by a keyed hash, and sealed so that only this installation can show them. It has a ring of master
 * keys, so that they can be exchanged while it runs: what is new is sealed, signed and hashed under the first, and what was made
 * under any of them is opened and found.
 */
export class Secrets {
  private readonly ring: readonly [RingKey, ...RingKey[]];
  private readonly oldest: RingKey;

  /**
   * @param masterKey 32 random bytes, as each of the others
   * @param oldest of them the one that this installation has had for longest, whatever their order is
   */
  constructor(masterKey: Buffer, others: readonly Buffer[] = [], oldest = toMasterKeyId(masterKey)) {
    this.ring = [ringKey(masterKey), ...others.map(ringKey)];
    this.oldest = this.ring.find(({ id }) => id === oldest) ?? this.ring[0];
  }

  /** Names the key that what is new is sealed with. */
  get keyId(): string {
    return this.ring[0].id;
  }

  /** A key of its own for each purpose. What was made with it must be checked with all of `keysFor`. */
  keyFor(purpose: string, bytes = 32): Buffer {
    return derived(this.ring[0].masterKey, purpose, bytes);
  }

  /** The same of each key in the ring, that of `keyFor` first. */
  keysFor(purpose: string, bytes = 32): readonly Buffer[] {
    return this.ring.map(({ masterKey }) => derived(masterKey, purpose, bytes));
  }

  mintApiKey(): string {
    return `sk-${randomBase62(KEY_LENGTH)}`;
  }

  /** Only ever compared with others of its kind, so a key in front is as good as an HMAC, at a fifth of its cost. */
  hash(secret: string): string {
    return hashed(secret, this.ring[0]);
  }

  /** What `hash` may have been when it was kept, what it is now first. */
  hashes(secret: string): readonly string[] {
    return this.ring.map((key) => hashed(secret, key));
  }

  /**
   * The hash by which processes find out that they mean the same thing. They all make it alike, also while some have a new key
   * already and others have not: under the oldest.
   */
  digest(text: string): string {
    return hashed(text, this.oldest);
  }

  seal(secret: string): SealedSecretBox {
    return { key: this.keyId, box: this.sealBytes(Buffer.from(secret)).toString('base64') };
  }

  /** @throws Error when it was sealed with a master key that is not in the ring, or was changed */
  open({ key, box }: SealedSecretBox): string {
    const found = this.ring.find(({ id }) => id === key);
    if (!found) throw new Error(`a secret is sealed with the master key ${key}, which is not among MASTER_KEY`);
    return unsealed(Buffer.from(box, 'base64'), found).toString();
  }

  /** Seals what is too large for text. */
  sealBytes(bytes: Buffer): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.ring[0].sealKey, nonce);
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws Error when it was sealed with a master key that is not in the ring, or was changed */
  openBytes(box: Buffer): Buffer {
    let refusal: unknown;
    for (const key of this.ring) {
      try {
        return unsealed(box, key);
      } catch (error) {
        refusal = error;
      }
    }
    throw refusal;
  }
}

function hashed(text: string, { hashKey }: RingKey): string {
  return hash('sha256', hashKey + text, 'base64url');
}

function unsealed(box: Buffer, { sealKey }: RingKey): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', sealKey, box.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(box.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(box.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}

/** Random text without bias: `randomInt` draws again where a byte would favour some letters. */
export function randomBase62(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('');
}
