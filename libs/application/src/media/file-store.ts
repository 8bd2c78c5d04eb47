/** Stores files for a limited time: results that are handed out, and requests of running jobs. */
import type { Randomness } from '#kernel';

/** `gen`: results, which signed links open. `req`: sealed requests of jobs, which are not accessible from outside. */
export type FilePurpose = 'gen' | 'req';

const HOUR_MS = 3_600_000;
const HOUR_DIGITS = 6;
const RANDOM_BYTES = 16;
const ID = /^(gen|req)_([0-9a-z]{6})([0-9a-f]{32})$/;

/**
 * Generates an id that cannot be guessed, for files that are deleted after `until` (milliseconds since 1970). The hour
 * of deletion is part of the id, so it is stored nowhere else.
 */
export function generateFileId(
  randomness: Pick<Randomness, 'generateBytes'>,
  purpose: FilePurpose,
  until: number,
): string {
  const hour = Math.ceil(until / HOUR_MS)
    .toString(36)
    .padStart(HOUR_DIGITS, '0');
  return `${purpose}_${hour}${Buffer.from(randomness.generateBytes(RANDOM_BYTES)).toString('hex')}`;
}

/**
 * Parses an id into its purpose and the hour (since 1970) from which its files are deleted.
 * @returns undefined if the id is invalid
 */
export function parseFileId(id: string): { readonly purpose: FilePurpose; readonly hour: number } | undefined {
  const [, purpose, hour = ''] = ID.exec(id) ?? [];
  return purpose === undefined ? undefined : { purpose: purpose as FilePurpose, hour: Number.parseInt(hour, 36) };
}

/** One of the files of an id; `n` starts at 0. */
export interface FileName {
  readonly id: string;
  readonly n: number;
}

export interface FileToStore extends FileName {
  /** Detected from the content. */
  readonly mediaType: string;
  readonly bytes: Uint8Array | AsyncIterable<Uint8Array>;
}

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface StoredFile {
  readonly mediaType: string;
  /** Size of the complete file in bytes. */
  readonly size: number;
  /** Can be called once. An iteration that stops early must be ended with its `return`. */
  read(range?: ByteRange): AsyncIterable<Uint8Array>;
}

/** Files cannot be stored or read at the moment: the disk is full, or a service does not respond. */
export class FileStoreUnavailableError extends Error {
  override readonly name = 'FileStoreUnavailableError';

  constructor(cause: unknown) {
    super('Files cannot be stored or read at the moment', { cause });
  }
}

export abstract class FileStore {
  /**
   * Stores a file atomically, and replaces a file with the same name.
   * @returns its size in bytes
   * @throws FileStoreUnavailableError, or the error that reading its bytes threw
   */
  abstract save(file: FileToStore): Promise<number>;
  /** @returns undefined if the file does not exist or was deleted @throws FileStoreUnavailableError */
  abstract find(name: FileName): Promise<StoredFile | undefined>;
  /** Deletes all files of an id, if there are any. */
  abstract remove(id: string): Promise<void>;
  /** Deletes all files that have expired at `now` (milliseconds since 1970). @returns the number of ids */
  abstract removeExpired(now: number): Promise<number>;
  abstract close(): Promise<void>;
}
