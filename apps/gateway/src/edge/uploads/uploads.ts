/** Parses bodies with files after the caller is identified. The files are on disk until no work with them is left. */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { detectSafeFileType } from '#connectors';
import { Rejection } from '#kernel';
import { BadRequestError, OverloadedError, PayloadTooLargeError, UnsupportedMediaTypeError } from '../errors/errors.ts';
import {
  MemoryBudget,
  MemoryShare,
  type MemoryShareholder,
  resolveMemoryShareholders,
} from '../limits/memory-budget.ts';
import {
  type FilePart,
  getMaxUploadBytes,
  isMultipart,
  MAX_FIELDS_BYTES,
  MULTIPART,
  parseMultipart,
} from './multipart.ts';
import { Upload, type UploadedFile, type UploadOptions } from './upload.ts';
import { UploadDirectory } from './upload-directory.ts';

const OVERLOADED_MESSAGE = 'Uploaded files cannot be stored at the moment; retry later';

export interface UploadServiceOptions {
  /** Each process creates its own directory in this one. */
  readonly directory: string;
  /** Limit of all files on disk at the same time. */
  readonly maxBytes: number;
  /** Whether an account was ever credited. Operations with files cost money. */
  isFunded(accountId: string): Promise<boolean>;
  readonly reportError: (problem: string, error: unknown) => void;
}

export class Uploads {
  private readonly budget: MemoryBudget;

  private constructor(
    private readonly directory: UploadDirectory,
    private readonly options: UploadServiceOptions,
  ) {
    this.budget = new MemoryBudget(options.maxBytes, OVERLOADED_MESSAGE);
  }

  /** @throws the errors of `UploadDirectory.open` */
  static async open(options: UploadServiceOptions): Promise<Uploads> {
    return new Uploads(await UploadDirectory.open(options.directory, options.reportError), options);
  }

  /** Bytes of files that are currently on disk. */
  get usedBytes(): number {
    return this.budget.usedBytes;
  }

  async close(): Promise<void> {
    await this.directory.close();
  }

  /**
   * Adds the parser and a hook for operations with `upload` that are declared after this call. The hook follows those
   * that identify the caller and decompress the body. Operations with JSON bodies reject multipart/form-data.
   */
  registerParser(fastify: FastifyInstance): void {
    fastify.addContentTypeParser(MULTIPART, (request: FastifyRequest, payload: Readable) =>
      this.read(request, payload),
    );
    fastify.addHook('onRoute', (route) => {
      const { upload } = route.config?.operation ?? {};
      if (!upload) return;
      const check = (request: FastifyRequest, reply: FastifyReply, _: unknown, done: (error?: Error) => void) => {
        reply.raw.once('close', () => request.body instanceof Upload && request.body.end());
        done(
          upload.acceptsJson || isMultipart(request.headers)
            ? undefined
            : new UnsupportedMediaTypeError(`The body must be ${MULTIPART}`),
        );
      };
      route.preParsing = [route.preParsing ?? [], check].flat() as never;
    });
  }

  private async read(request: FastifyRequest, payload: Readable): Promise<Upload> {
    const options = request.routeOptions.config.operation?.upload;
    if (!options) throw new UnsupportedMediaTypeError('The body must be application/json');
    const maxBytes = getMaxUploadBytes(options);
    if (Number(request.headers['content-length']) > maxBytes)
      throw new PayloadTooLargeError(`The body must have at most ${maxBytes} bytes`);
    const shareholders = await this.resolveShareholders(request);
    this.budget.assertCapacity(shareholders);
    // Fields are held in memory.
    request.inMemory?.reserve(MAX_FIELDS_BYTES);
    const storage = new UploadStorage(
      this.directory.path,
      new MemoryShare(this.budget, shareholders),
      this.options.reportError,
    );
    try {
      const storeFile = (part: FilePart) => storage.store(part);
      const { fields, files } = await parseMultipart({
        payload,
        headers: request.headers,
        maxBytes,
        options,
        storeFile,
      });
      assertRequiredFiles(files, options);
      const upload = new Upload(fields, files, () => storage.discard());
      if (request.raw.socket.destroyed) throw new BadRequestError('The request body ended early');
      return upload;
    } catch (error) {
      storage.discard();
      throw error;
    }
  }

  /** @throws Rejection for an account that was never credited: disk space and time for its files would be free */
  private async resolveShareholders(request: FastifyRequest): Promise<readonly MemoryShareholder[]> {
    const { caller, anonymousCaller } = request;
    const { isFunded } = this.options;
    if (caller && !anonymousCaller && !(await isFunded(caller.accountId)))
      throw new Rejection('insufficient_balance', 'Insufficient balance');
    return resolveMemoryShareholders(request, isFunded);
  }
}

function assertRequiredFiles(files: readonly UploadedFile[], { files: names, optional = [] }: UploadOptions): void {
  const receivedFields = new Set(files.map(({ field }) => field));
  const missing = names.find((name) => !receivedFields.has(name) && !optional.includes(name));
  if (missing !== undefined) throw new BadRequestError(`${missing} is missing; send a file`, missing);
}

/** The files of one upload. */
class UploadStorage {
  private readonly paths: string[] = [];

  constructor(
    private readonly directory: string,
    private readonly share: MemoryShare,
    private readonly reportError: (problem: string, error: unknown) => void,
  ) {}

  /** @returns undefined for an empty file without a name, which a form sends if no file was chosen */
  async store({ field, filename, bytes }: FilePart): Promise<UploadedFile | undefined> {
    const file = path.join(this.directory, randomUUID());
    this.paths.push(file);
    const digest = createHash('sha256');
    let size = 0;
    const countAndHash = async function* (this: UploadStorage, chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        this.share.reserve(chunk.length);
        size += chunk.length;
        digest.update(chunk);
        yield chunk;
      }
    }.bind(this);
    const output = createWriteStream(file, { flags: 'wx', mode: 0o600 });
    // A failed pipeline does not wait until the file is open, so the file could be created after it was deleted.
    const closed = new Promise<void>((resolve) => output.once('close', resolve));
    await pipeline(bytes, countAndHash, output).catch(async (error) => {
      await closed;
      if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
      this.reportError('an uploaded file could not be written', error);
      throw new OverloadedError(OVERLOADED_MESSAGE);
    });
    if (size === 0 && filename === '') return undefined;
    const mediaType = await detectSafeFileType(file);
    return { field, filename, mediaType, path: file, size, sha256: digest.digest('hex') };
  }

  /** Deletes the files. A reader that has one of them open can continue to read it. */
  discard(): void {
    const removed = this.paths.splice(0).map((file) => rm(file, { force: true }));
    void Promise.all(removed)
      .catch((error) => this.reportError('files of an upload could not be deleted', error))
      .finally(() => this.share.freeAll());
  }
}
