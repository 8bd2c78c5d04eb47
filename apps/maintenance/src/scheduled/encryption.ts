/** Encrypts files in the format of age (https://age-encryption.org), which the program of that name also decrypts. */
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption';
import { StartError } from '#foundation';

/** Encrypts content to a public key. */
export type Encrypt = (content: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;

/** @throws StartError if BACKUP_PUBLIC_KEY is missing or is no public key */
export function createEncryption(publicKey: string | undefined): Encrypt {
  if (publicKey === undefined) throw new StartError('Scheduled backups require BACKUP_PUBLIC_KEY.');
  const encrypter = new Encrypter();
  try {
    encrypter.addRecipient(publicKey);
  } catch {
    throw new StartError('BACKUP_PUBLIC_KEY is not a public key of age: a character is incorrect or missing.');
  }
  return async function* encrypt(content) {
    yield* await encrypter.encrypt(ReadableStream.from(content) as ReadableStream<Uint8Array>);
  };
}

/**
 * @returns a function that decrypts content, and throws if it was modified or truncated, or encrypted to another key
 * @throws StartError if BACKUP_SECRET_KEY is missing or is no secret key
 */
export function createDecryption(secretKey: string | undefined): Encrypt {
  if (secretKey === undefined) throw new StartError('This command requires BACKUP_SECRET_KEY.');
  const decrypter = new Decrypter();
  try {
    decrypter.addIdentity(secretKey);
  } catch {
    throw new StartError('BACKUP_SECRET_KEY is not a secret key of age: a character is incorrect or missing.');
  }
  return async function* decrypt(content) {
    yield* await decrypter.decrypt(ReadableStream.from(content) as ReadableStream<Uint8Array>);
  };
}

export async function generateKeys(): Promise<{ readonly publicKey: string; readonly secretKey: string }> {
  const secretKey = await generateX25519Identity();
  return { secretKey, publicKey: await identityToRecipient(secretKey) };
}
