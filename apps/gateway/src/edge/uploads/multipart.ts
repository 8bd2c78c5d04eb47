/** Parses `multipart/form-data` (RFC 7578) as it arrives. Files are streamed to storage. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy';
import { BadRequestError, PayloadTooLargeError, RequestTimeoutError } from '../errors/errors.ts';
import type { UploadFields, UploadOptions } from './upload.ts';

export const MULTIPART = 'multipart/form-data';
/** Space for all fields and part headers in the limit of the body, in addition to the files. */
export const MAX_FIELDS_BYTES = 1024 * 1024;
const MAX_FIELD_BYTES = 256 * 1024;
const MAX_FIELDS = 64;
const MAX_PARTS = 100;
const MAX_HEAD_BYTES = 8 * 1024;
const MAX_HEAD_LINES = 16;
const MAX_NAME = 256;
const MAX_FILENAME = 255;
/** Maximum time without data from the client. Time spent on writing to a slow disk does not count. */
const MAX_IDLE_MS = 20_000;

export interface MultipartRequest<File> {
  readonly payload: Readable;
  readonly headers: IncomingHttpHeaders;
  /** Limit of the entire body after decompression. */
  readonly maxBytes: number;
  readonly options: UploadOptions;
  /** Stores a file as it arrives. After a failure, the caller of `parseMultipart` removes all files. */
  storeFile(part: FilePart): Promise<File | undefined>;
  readonly maxIdleMs?: number;
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

export function isMultipart(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() === MULTIPART;
}

/** Returns the limit of the body in bytes. */
export function getMaxUploadBytes(options: UploadOptions): number {
  return options.maxBytes * getMaxFiles(options) + MAX_FIELDS_BYTES;
}

function getMaxFiles({ files, maxFiles = files.length }: UploadOptions): number {
  return maxFiles;
}

/**
 * Resolves when the entire body has arrived and its files are stored.
 * @throws the first error, after all writing has ended; the caller removes the files that were stored until then
 */
export async function parseMultipart<File>(incoming: MultipartRequest<File>): Promise<MultipartParts<File>> {
  const { payload, maxBytes, maxIdleMs = MAX_IDLE_MS } = incoming;
  const parts = new PartReader(incoming);
  const { parser } = parts;
  let size = 0;
  const idleTimer = setTimeout(() => {
    if (payload.readableEnded) parts.fail(createMalformedBodyError());
    else if (parser.writableNeedDrain) idleTimer.refresh();
    else parts.fail(new RequestTimeoutError(`No data of the request body arrived for ${maxIdleMs / 1000} seconds`));
  }, maxIdleMs);
  const count = (chunk: Uint8Array) => {
    idleTimer.refresh();
    size += chunk.length;
    if (size > maxBytes) parts.fail(new PayloadTooLargeError(`The body must have at most ${maxBytes} bytes`));
  };
  const onError = (error: Error & { readonly statusCode?: number }) =>
    parts.fail(error.statusCode ? error : new BadRequestError('The request body ended early'));
  const onClose = () => parts.fail(new BadRequestError('The request body ended early'));
  payload.on('error', onError).once('close', onClose);
  payload.pipe(parser);
  payload.on('data', count).once('end', () => payload.off('close', onClose));
  try {
    return await parts.result;
  } finally {
    clearTimeout(idleTimer);
    payload.off('data', count).off('close', onClose);
    payload.unpipe(parser);
    // After a failure the rest of the body is discarded, and `BodyParser` closes the connection after the response.
    payload.resume();
  }
}

/** Collects fields and files from the events of the parser, or the first error. */
class PartReader<File> {
  readonly parser: BusboyInstance;
  private readonly fields = new Map<string, string | string[]>();
  private readonly pendingFiles: Promise<File | undefined>[] = [];
  private readonly openStreams = new Set<Readable>();
  private readonly ended = Promise.withResolvers<void>();
  private failure: Error | undefined;

  constructor(private readonly request: MultipartRequest<File>) {
    this.parser = this.createParser(request);
    this.parser
      .on('field', (name, value, _, truncated) => this.runStep(() => this.addField(name, value, truncated)))
      .on('file', (name, bytes, filename) => this.runStep(() => this.addFile(name, bytes, filename)))
      .on('partsLimit', () => this.fail(new BadRequestError(`The body must have at most ${MAX_PARTS} parts`)))
      .on('fieldsLimit', () => this.fail(new BadRequestError(`The body must have at most ${MAX_FIELDS} fields`)))
      .on('error', () => this.fail(createMalformedBodyError()))
      .on('finish', () => this.ended.resolve());
  }

  /** @throws the first error, after all writing has ended */
  get result(): Promise<MultipartParts<File>> {
    return this.ended.promise.then(async () => {
      const stored = await Promise.all(this.pendingFiles);
      if (this.failure) throw this.failure;
      const files = stored.filter((file) => file !== undefined);
      return { fields: Object.fromEntries(this.fields), files };
    });
  }

  fail(error: Error): void {
    this.failure ??= error;
    this.request.payload.unpipe(this.parser);
    for (const bytes of this.openStreams) bytes.destroy(this.failure);
    this.ended.resolve();
  }

  private createParser({ headers, options }: MultipartRequest<File>): BusboyInstance {
    const isPartAFile = (name = '', _: unknown, filename?: string) =>
      filename !== undefined || options.files.includes(stripBrackets(name));
    const limits = {
      fields: MAX_FIELDS,
      fieldSize: MAX_FIELD_BYTES,
      fileSize: options.maxBytes,
      parts: MAX_PARTS,
      headerSize: MAX_HEAD_BYTES,
      headerPairs: MAX_HEAD_LINES,
    };
    try {
      return new Busboy({ headers: headers as BusboyHeaders, limits, isPartAFile: isPartAFile as never });
    } catch {
      throw createMalformedBodyError();
    }
  }

  /** Ignores events that arrive after the first error. */
  private runStep(step: () => void): void {
    if (this.failure) return;
    try {
      step();
    } catch (error) {
      this.fail(error as Error);
    }
  }

  private addField(name: unknown, value: string, truncated: boolean): void {
    const field = parseFieldName(name);
    if (truncated) throw new BadRequestError(`${field} must have at most ${MAX_FIELD_BYTES} bytes`, field);
    const before = this.fields.get(field);
    if (stripBrackets(field) !== field) {
      const list = this.fields.get(stripBrackets(field)) ?? [];
      if (!Array.isArray(list)) throw new BadRequestError(`${stripBrackets(field)} must be sent only once`, field);
      this.fields.set(stripBrackets(field), [...list, value]);
    } else if (before !== undefined) {
      throw new BadRequestError(`${field} must be sent only once`, field);
    } else {
      this.fields.set(field, value);
    }
  }

  private addFile(name: unknown, bytes: Readable, filename: string | undefined): void {
    bytes.on('error', () => {});
    const field = stripBrackets(parseFieldName(name));
    const { options, storeFile } = this.request;
    // Operations ignore unknown fields. For files in unknown fields this happens here.
    if (!options.files.includes(field)) return void bytes.resume();
    const maxFiles = getMaxFiles(options);
    if (this.pendingFiles.length === maxFiles)
      throw new BadRequestError(`The body must have at most ${maxFiles} files`, field);
    bytes.once('limit', () =>
      this.fail(new PayloadTooLargeError(`${field} must have at most ${options.maxBytes} bytes`)),
    );
    this.openStreams.add(bytes);
    const storedFile = storeFile({ field, filename: (filename ?? '').slice(0, MAX_FILENAME).toWellFormed(), bytes });
    this.pendingFiles.push(
      storedFile.catch((error) => {
        this.fail(error);
        return undefined;
      }),
    );
    void storedFile.finally(() => this.openStreams.delete(bytes)).catch(() => {}); // `fail` has got the error
  }
}

function createMalformedBodyError(): BadRequestError {
  return new BadRequestError('The body is not valid multipart/form-data');
}

function parseFieldName(name: unknown): string {
  if (typeof name !== 'string' || name === '') throw new BadRequestError('A part of the body has no name');
  if (name.length > MAX_NAME) throw new BadRequestError(`Names of fields must have at most ${MAX_NAME} characters`);
  return name;
}

/** OpenAI's clients write `image[]` and `timestamp_granularities[]` for fields with several values. */
function stripBrackets(name: string): string {
  return name.endsWith('[]') ? name.slice(0, -2) : name;
}
