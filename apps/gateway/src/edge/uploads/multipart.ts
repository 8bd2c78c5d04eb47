/** Reads `multipart/form-data` (RFC 7578) as it comes: its files go on to where they are kept, and never into memory. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy';
import { BadRequestError, PayloadTooLargeError, RequestTimeoutError } from '../errors/errors.ts';
import type { UploadFields, UploadOptions } from './upload.ts';

/** Fields and the heads of parts, beside the files. */
export const MAX_FIELDS_BYTES = 1024 * 1024;
const MAX_FIELD_BYTES = 256 * 1024;
const MAX_FIELDS = 64;
const MAX_PARTS = 100;
const MAX_HEAD_BYTES = 8 * 1024;
const MAX_HEAD_LINES = 16;
const MAX_NAME = 256;
const MAX_FILENAME = 255;
/** Of who sends; a disk that is slow is waited for. */
const MAX_SILENCE_MS = 20_000;

export interface MultipartRequest<File> {
  readonly payload: Readable;
  readonly headers: IncomingHttpHeaders;
  /** Of the whole body, unpacked. */
  readonly maxBytes: number;
  readonly notes: UploadOptions;
  /** Keeps a file as it comes. A file that it has begun and cannot keep it removes itself. */
  keep(part: FilePart): Promise<File | undefined>;
  readonly maxSilenceMs?: number;
}

export interface FilePart {
  readonly field: string;
  readonly filename: string;
  readonly bytes: Readable;
}

export interface MultipartParts<File> {
  readonly fields: UploadFields;
  readonly files: readonly File[];
}

/** How many bytes a body may have. */
export function getMaxUploadBytes(notes: UploadOptions): number {
  return notes.maxBytes * mostFilesOf(notes) + MAX_FIELDS_BYTES;
}

function mostFilesOf({ files, maxFiles = files.length }: UploadOptions): number {
  return maxFiles;
}

/**
 * @returns once all of it has come and is kept
 * @throws the first thing that was wrong, once nothing is written any more; what was kept until then is the caller's
 */
export async function parseMultipart<File>(incoming: MultipartRequest<File>): Promise<MultipartParts<File>> {
  const { payload, maxBytes, maxSilenceMs = MAX_SILENCE_MS } = incoming;
  const parts = new PartReader(incoming);
  const { parser } = parts;
  let size = 0;
  const silence = setTimeout(() => {
    if (payload.readableEnded) parts.fail(malformed());
    else if (parser.writableNeedDrain) silence.refresh();
    else parts.fail(new RequestTimeoutError(`Nothing of the body came for ${maxSilenceMs / 1000} seconds`));
  }, maxSilenceMs);
  const count = (piece: Uint8Array) => {
    silence.refresh();
    size += piece.length;
    if (size > maxBytes) parts.fail(new PayloadTooLargeError(`The body must have at most ${maxBytes} bytes`));
  };
  const broken = (error: Error & { readonly statusCode?: number }) =>
    parts.fail(error.statusCode ? error : new BadRequestError('The body broke off'));
  const closed = () => parts.fail(new BadRequestError('The body broke off'));
  payload.on('error', broken).once('close', closed);
  payload.pipe(parser);
  payload.on('data', count).once('end', () => payload.off('close', closed));
  try {
    return await parts.all;
  } finally {
    clearTimeout(silence);
    payload.off('data', count).off('close', closed);
    payload.unpipe(parser);
    // What still comes is not looked at, and the connection ends with the answer.
    payload.resume();
  }
}

/** Turns what the parser finds into fields and files, or into the first thing that is wrong. */
class PartReader<File> {
  readonly parser: BusboyInstance;
  private readonly fields = new Map<string, string | string[]>();
  private readonly keeping: Promise<File | undefined>[] = [];
  private readonly open = new Set<Readable>();
  private readonly ended = Promise.withResolvers<void>();
  private failure: Error | undefined;

  constructor(private readonly incoming: MultipartRequest<File>) {
    this.parser = this.parserOf(incoming);
    this.parser
      .on('field', (name, value, _, truncated) => this.take(() => this.field(name, value, truncated)))
      .on('file', (name, bytes, filename) => this.take(() => this.file(name, bytes, filename)))
      .on('partsLimit', () => this.fail(new BadRequestError(`The body must have at most ${MAX_PARTS} parts`)))
      .on('fieldsLimit', () => this.fail(new BadRequestError(`The body must have at most ${MAX_FIELDS} fields`)))
      .on('error', () => this.fail(malformed()))
      .on('finish', () => this.ended.resolve());
  }

  /** @throws the first thing that was wrong, once nothing is written any more */
  get all(): Promise<MultipartParts<File>> {
    return this.ended.promise.then(async () => {
      const kept = await Promise.all(this.keeping);
      if (this.failure) throw this.failure;
      const files = kept.filter((file) => file !== undefined);
      return { fields: Object.fromEntries(this.fields), files };
    });
  }

  fail(error: Error): void {
    this.failure ??= error;
    this.incoming.payload.unpipe(this.parser);
    for (const bytes of this.open) bytes.destroy(this.failure);
    this.ended.resolve();
  }

  private parserOf({ headers, notes }: MultipartRequest<File>): BusboyInstance {
    const isPartAFile = (name = '', _: unknown, filename?: string) =>
      filename !== undefined || notes.files.includes(plain(name));
    const limits = {
      fields: MAX_FIELDS,
      fieldSize: MAX_FIELD_BYTES,
      fileSize: notes.maxBytes,
      parts: MAX_PARTS,
      headerSize: MAX_HEAD_BYTES,
      headerPairs: MAX_HEAD_LINES,
    };
    try {
      return new Busboy({ headers: headers as BusboyHeaders, limits, isPartAFile: isPartAFile as never });
    } catch {
      throw malformed();
    }
  }

  /** Events that were on their way when something was wrong say nothing any more. */
  private take(step: () => void): void {
    if (this.failure) return;
    try {
      step();
    } catch (error) {
      this.fail(error as Error);
    }
  }

  private field(name: unknown, value: string, truncated: boolean): void {
    const field = nameIn(name);
    if (truncated) throw new BadRequestError(`${field} must have at most ${MAX_FIELD_BYTES} bytes`, field);
    const before = this.fields.get(field);
    if (plain(field) !== field) {
      const list = this.fields.get(plain(field)) ?? [];
      if (!Array.isArray(list)) throw new BadRequestError(`${plain(field)} must be there once`, field);
      this.fields.set(plain(field), [...list, value]);
    } else if (before !== undefined) {
      throw new BadRequestError(`${field} must be there once`, field);
    } else {
      this.fields.set(field, value);
    }
  }

  private file(name: unknown, bytes: Readable, filename: string | undefined): void {
    bytes.on('error', () => {});
    const field = plain(nameIn(name));
    const { notes, keep } = this.incoming;
    // Unknown fields are let through, here without a look at what they carry.
    if (!notes.files.includes(field)) return void bytes.resume();
    const most = mostFilesOf(notes);
    if (this.keeping.length === most) throw new BadRequestError(`The body must have at most ${most} files`, field);
    bytes.once('limit', () =>
      this.fail(new PayloadTooLargeError(`${field} must have at most ${notes.maxBytes} bytes`)),
    );
    this.open.add(bytes);
    const kept = keep({ field, filename: (filename ?? '').slice(0, MAX_FILENAME).toWellFormed(), bytes });
    this.keeping.push(
      kept.catch((error) => {
        this.fail(error);
        return undefined;
      }),
    );
    void kept.finally(() => this.open.delete(bytes)).catch(() => {});
  }
}

function malformed(): BadRequestError {
  return new BadRequestError('The body is not valid multipart/form-data');
}

function nameIn(name: unknown): string {
  if (typeof name !== 'string' || name === '') throw new BadRequestError('A part of the body has no name');
  if (name.length > MAX_NAME) throw new BadRequestError(`Names of fields must have at most ${MAX_NAME} characters`);
  return name;
}

/** OpenAI's clients write `image[]` and `timestamp_granularities[]` where there may be several. */
function plain(name: string): string {
  return name.endsWith('[]') ? name.slice(0, -2) : name;
}
