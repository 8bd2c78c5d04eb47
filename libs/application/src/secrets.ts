import { createCipheriv, createDecipheriv, createHash, hash, hkdfSync } from 'node:crypto';
import type { Randomness } from '#kernel';
import { divide, WorkParts } from './event-loop.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Values of a byte that are a multiple of 62: each letter has as many of them as any other. */
const UNBIASED_VALUES = 256 - (256 % BASE62.length);
/** 62²² > 2¹³⁰. Clients check for exactly this length. */
const KEY_LENGTH = 22;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A secret as events store it: sealed with AES-256-GCM, with the id of the master key that sealed it. */
export interface SealedSecretBox {
  readonly key: string;
  readonly box: string;
}

/** Derives a separate key for each purpose from a master key. */
function deriveKey(masterKey: Buffer, purpose: string, bytes = 32): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', purpose, bytes));
}

/** Returns the id of a master key, which does not reveal the key. */
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
 * Generates API keys, hashes secrets so that they can be looked up, and seals them so that only this installation can
 * open them. A key ring allows an operator to replace the master key while the service runs. The first key seals and
 * hashes new secrets; secrets of every key in the ring can be opened and found.
 */
export class Secrets {
  private keyRing: readonly [RingKey, ...RingKey[]];
  private oldest: RingKey;
  private readonly purposeKeys = new Map<string, Buffer[]>();

  /**
   * @param randomness source of nonces, API keys and other ids that must not be guessed
   * @param masterKey 32 random bytes, like each of the others
   * @param oldest id of the key that this installation has had for longest, at any place in the ring
   */
  constructor(
    readonly randomness: Randomness,
    masterKey: Buffer,
    otherMasterKeys: readonly Buffer[] = [],
    oldest = toMasterKeyId(masterKey),
  ) {
    this.keyRing = [deriveRingKey(masterKey), ...otherMasterKeys.map(deriveRingKey)];
    this.oldest = this.keyRing.find(({ id }) => id === oldest) ?? this.keyRing[0];
  }

  /** Replaces the key ring by that of `other`, also in the lists that `derivePurposeKeys` has returned. */
  replaceKeys(other: Secrets): void {
    this.keyRing = other.keyRing;
    this.oldest = other.oldest;
    for (const [purpose, keys] of this.purposeKeys) keys.splice(0, keys.length, ...this.deriveKeys(purpose));
  }

  /** The id of the key that seals new secrets. */
  get keyId(): string {
    return this.keyRing[0].id;
  }

  /**
   * Derives the key of a purpose from each master key. The first one is for what is new; what exists must be verified
   * with each of them.
   * @returns a list whose keys change when the master keys are replaced
   */
  derivePurposeKeys(purpose: string): readonly Buffer[] {
    const keys = this.purposeKeys.get(purpose) ?? this.deriveKeys(purpose);
    this.purposeKeys.set(purpose, keys);
    return keys;
  }

  private deriveKeys(purpose: string): Buffer[] {
    return this.keyRing.map(({ masterKey }) => deriveKey(masterKey, purpose));
  }

  generateApiKey(): string {
    return `sk-${generateBase62(this.randomness, KEY_LENGTH)}`;
  }

  /**
   * Returns a hash of the key and the secret, at a fifth of the cost of an HMAC. Such hashes are only compared with
   * each other, so an HMAC would protect no better.
   */
  hash(secret: string): string {
    return hashWithKey(secret, this.keyRing[0]);
  }

  /** Returns all values that `hash` may have returned when the hash was stored, the current one first. */
  hashWithAllKeys(secret: string): readonly string[] {
    return this.keyRing.map((key) => hashWithKey(secret, key));
  }

  /**
   * Returns the hash by which processes recognise the same text. It uses the oldest key, so that all processes get the
   * same hash while only some of them have a new key.
   */
  hashWithOldestKey(text: string): string {
    return hashWithKey(text, this.oldest);
  }

  /**
   * Like `hashWithOldestKey` for a text that begins with a prefix and may be long: then it is in buffers, and hashing
   * does not hold the event loop.
   */
  async hashContentWithOldestKey(prefix: string, content: string | readonly Buffer[]): Promise<string> {
    if (typeof content === 'string') return this.hashWithOldestKey(prefix + content);
    const digest = createHash('sha256').update(this.oldest.hashKey + prefix);
    const parts = new WorkParts();
    for (const buffer of content) {
      digest.update(buffer);
      await parts.rest();
    }
    return digest.digest('base64url');
  }

  seal(secret: string): SealedSecretBox {
    const { nonce, cipher } = this.createSealer();
    const box = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return { key: this.keyId, box: box.toString('base64') };
  }

  /** @throws Error if the secret was sealed with a master key that is not in the key ring, or was changed */
  open({ key, box }: SealedSecretBox): string {
    const match = this.keyRing.find(({ id }) => id === key);
    if (!match) throw new Error(`a secret is sealed with the master key ${key}, which is not among MASTER_KEY`);
    return unseal(Buffer.from(box, 'base64'), match).toString();
  }

  /**
   * Seals bytes, which may be in several parts, without holding the event loop. The result does not name its key, so
   * `openBytes` tries each one.
   */
  async sealBytes(...content: readonly Uint8Array[]): Promise<Buffer> {
    const { nonce, cipher } = this.createSealer();
    const size = content.reduce((sum, { length }) => sum + length, 0);
    const box = Buffer.allocUnsafe(NONCE_BYTES + size + TAG_BYTES);
    let end = nonce.copy(box);
    for await (const section of divide(...content)) end += cipher.update(section).copy(box, end);
    cipher.final(); // has no bytes in this mode
    cipher.getAuthTag().copy(box, end);
    return box;
  }

  private createSealer() {
    const nonce = Buffer.from(this.randomness.generateBytes(NONCE_BYTES));
    return { nonce, cipher: createCipheriv('aes-256-gcm', this.keyRing[0].sealKey, nonce) };
  }

  /**
   * Opens bytes without holding the event loop.
   * @param keyId of the master key that sealed the bytes, if known
   * @throws Error if the bytes were sealed with a master key that is not in the key ring, or were changed
   */
  async openBytes(box: Buffer, keyId?: string): Promise<Buffer> {
    let lastError: unknown = new Error(`no master key has the id ${keyId}`);
    for (const key of this.keyRing) {
      if (keyId !== undefined && key.id !== keyId) continue;
      try {
        return await unsealBytes(box, key);
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

function createUnsealer(box: Buffer, { sealKey }: RingKey) {
  return createDecipheriv('aes-256-gcm', sealKey, box.subarray(0, NONCE_BYTES)).setAuthTag(box.subarray(-TAG_BYTES));
}

function unseal(box: Buffer, key: RingKey): Buffer {
  const decipher = createUnsealer(box, key);
  return Buffer.concat([decipher.update(box.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}

async function unsealBytes(box: Buffer, key: RingKey): Promise<Buffer> {
  const decipher = createUnsealer(box, key);
  const sealed = box.subarray(NONCE_BYTES, -TAG_BYTES);
  const bytes = Buffer.allocUnsafe(sealed.length);
  let end = 0;
  for await (const section of divide(sealed)) end += decipher.update(section).copy(bytes, end);
  decipher.final(); // has no bytes in this mode
  return bytes;
}

/** Generates random text without bias: a byte that would favour some letters is not used. */
export function generateBase62({ generateBytes }: Pick<Randomness, 'generateBytes'>, length: number): string {
  let text = '';
  while (text.length < length)
    for (const byte of generateBytes(length - text.length))
      if (byte < UNBIASED_VALUES) text += BASE62[byte % BASE62.length];
  return text;
}
