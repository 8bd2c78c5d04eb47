/** Where files are kept for a while: results that are handed out, and requests of jobs that run. */
import { randomBytes } from 'node:crypto';

/** `gen`: results, which signed addresses open. `req`: sealed requests of jobs, which nothing opens from outside. */
export type FilePurpose = 'gen' | 'req';

const HOUR_MS = 3_600_000;
const HOUR_DIGITS = 6;
const RANDOM_BYTES = 16;
const ID = /^(gen|req)_([0-9a-z]{6})([0-9a-f]{32})$/;

/**
 * An id that nobody can guess, for files that are deleted after `until` (milliseconds since 1970). Its hour stands in the
 * id, so that nothing else needs to remember it.
 */
export function generateFileId(purpose: FilePurpose, until: number): string {
  const hour = Math.ceil(until / HOUR_MS)
    .toString(36)
    .padStart(HOUR_DIGITS, '0');
  return `${purpose}_${hour}${randomBytes(RANDOM_BYTES).toString('hex')}`;
}

/** What an id says: its purpose, and the hour (since 1970) from which on its files are deleted; undefined: it is none. */
export function parseFileId(id: string): { readonly purpose: FilePurpose; readonly hour: number } | undefined {
  const [, purpose, hour = ''] = ID.exec(id) ?? [];
  return purpose === undefined ? undefined : { purpose: purpose as FilePurpose, hour: Number.parseInt(hour, 36) };
}

/** One of the files of an id, from 0. */
export interface FileName {
  readonly id: string;
  readonly n: number;
}

export interface FileToStore extends FileName {
  /** By its content. */
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
  /** Of the whole file. */
  readonly size: number;
  /** May be read once; what is not read must be ended with its `return`. */
  read(range?: ByteRange): AsyncIterable<Uint8Array>;
}

/** Files cannot be kept or had at the moment: a disk that is full, a service that does not answer. */
export class FileStoreUnavailableError extends Error {
  override readonly name = 'FileStoreUnavailableError';

  constructor(cause: unknown) {
    super('Files cannot be kept or read at the moment', { cause });
  }
}

export abstract class FileStore {
  /**
   * Keeps a file: all of it, or none is seen. Keeping it again under the same name replaces it.
   * @returns its size in bytes
   * @throws FileStoreUnavailableError, or what reading its bytes threw
   */
  abstract save(file: FileToStore): Promise<number>;
  /** Undefined where there is none, or no more. */
  abstract find(name: FileName): Promise<StoredFile | undefined>;
  /** Deletes all files of an id. It is no error where there are none. */
  abstract remove(id: string): Promise<void>;
  /** Deletes all files whose time is over at `now` (milliseconds since 1970). @returns how many ids */
  abstract removeExpired(now: number): Promise<number>;
  abstract close(): Promise<void>;
}
