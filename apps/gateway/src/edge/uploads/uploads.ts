/** Bodies with files in them: read once their sender is known, and kept on disk until they are answered. */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { mediaTypeOfFile } from '#connectors';
import { Rejection } from '#kernel';
import { networkOf } from '../addresses.ts';
import { Busy, InvalidRequest, TooLarge, UnsupportedMedia } from '../errors.ts';
import { type FilePart, mostBytesOf, readMultipart } from './multipart.ts';
import { Upload, type UploadedFile, type UploadNotes } from './upload.ts';
import { UploadDirectory } from './upload-directory.ts';

const MULTIPART = 'multipart/form-data';
const LINGER_MS = 3_000;

export interface UploadOptions {
  /** Below which each process makes a directory of its own. */
  readonly directory: string;
  /** Of all files that lie there at a time. */
  readonly maxBytes: number;
  /** Whether an account has ever been credited: what asks for a file costs money. */
  isFunded(accountId: string): Promise<boolean>;
  readonly alarm: (problem: string, error: unknown) => void;
}

export class Uploads {
  private readonly budget: Budget;

  private constructor(
    private readonly directory: UploadDirectory,
    private readonly options: UploadOptions,
  ) {
    this.budget = new Budget(options.maxBytes);
  }

  /** @throws StartError when the directory cannot be used */
  static async open(options: UploadOptions): Promise<Uploads> {
    return new Uploads(await UploadDirectory.open(options.directory, options.alarm), options);
  }

  /** Bytes of files that lie on disk now. */
  get bytes(): number {
    return this.budget.taken;
  }

  async close(): Promise<void> {
    await this.directory.close();
  }

  /**
   * Reads operations with `upload` notes, which are declared from now on, behind the hooks that find the caller and
   * unpack the body. Elsewhere a body of that type is refused.
   */
  readAt(fastify: FastifyInstance): void {
    fastify.addContentTypeParser(MULTIPART, (request: FastifyRequest, payload: Readable) =>
      this.read(request, payload),
    );
    fastify.addHook('onRoute', (route) => {
      if (!route.config?.operation?.upload) return;
      const check = (request: FastifyRequest, reply: FastifyReply, _: unknown, done: (error?: Error) => void) => {
        reply.raw.once('close', () => request.body instanceof Upload && request.body.end());
        done(isMultipart(request) ? undefined : new UnsupportedMedia(`The body must be ${MULTIPART}`));
      };
      route.preParsing = [route.preParsing ?? [], check].flat() as never;
      route.onSend = [route.onSend ?? [], linger].flat() as never;
    });
  }

  private async read(request: FastifyRequest, payload: Readable): Promise<Upload> {
    const notes = request.routeOptions.config.operation?.upload;
    if (!notes) throw new UnsupportedMedia('The body must be application/json');
    const maxBytes = mostBytesOf(notes);
    if (Number(request.headers['content-length']) > maxBytes)
      throw new TooLarge(`The body must have at most ${maxBytes} bytes`);
    const sharers = await this.sharersOf(request);
    this.budget.assertRoom(sharers);
    const spool = new Spool(this.directory.path, new Share(this.budget, sharers), this.options.alarm);
    try {
      const keep = (part: FilePart) => spool.keep(part);
      const { fields, files } = await readMultipart({ payload, headers: request.headers, maxBytes, notes, keep });
      assertThere(files, notes);
      const upload = new Upload(fields, files, () => spool.discard());
      if (request.raw.socket.destroyed) throw new InvalidRequest('The body broke off');
      return upload;
    } catch (error) {
      spool.discard();
      throw error;
    }
  }

  /**
   * Whose a body is. Visitors who have not paid yet share a part of the room, of which each address has a smaller one.
   * @throws Rejection
   */
  private async sharersOf({ caller, visitor, ip }: FastifyRequest): Promise<readonly Sharer[]> {
    if (visitor && 'proof' in visitor) return [{ name: visitor.proof.challengeId, part: PART_OF_A_PAYER }];
    if (visitor) return [{ name: networkOf(ip), part: PART_OF_AN_ADDRESS }, STRANGERS];
    const name = caller?.accountId ?? '';
    // Accounts are free: without this, disk and time for files would be as well.
    if (!(await this.options.isFunded(name))) throw new Rejection('insufficient_balance', 'Insufficient balance');
    return [{ name, part: PART_OF_A_PAYER }];
  }
}

/**
 * A client that is still sending when it is refused may not read the answer if its connection ends at once. So what still
 * comes is taken and thrown away for a while.
 */
function linger({ raw }: FastifyRequest, reply: FastifyReply, payload: unknown, done: (_: null, p: unknown) => void) {
  if (!raw.complete) {
    reply.removeHeader('connection');
    const end = () => void (raw.complete || raw.socket.destroy());
    reply.raw.once('finish', () => setTimeout(end, LINGER_MS).unref());
  }
  done(null, payload);
}

function isMultipart({ headers }: FastifyRequest): boolean {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() === MULTIPART;
}

function assertThere(files: readonly UploadedFile[], { files: names, optional = [] }: UploadNotes): void {
  const there = new Set(files.map(({ field }) => field));
  const missing = names.find((name) => !there.has(name) && !optional.includes(name));
  if (missing !== undefined) throw new InvalidRequest(`${missing} is missing: send a file`, missing);
}

function noRoom(): Busy {
  return new Busy('Too many files are being sent at the moment; try again soon');
}

/** Somebody with files on disk, and how much of the room for all files they may have. */
interface Sharer {
  readonly name: string;
  readonly part: number;
}

/** So that others can send, too. */
const PART_OF_A_PAYER = 1 / 2;
const PART_OF_AN_ADDRESS = 1 / 8;
const STRANGERS: Sharer = { name: 'strangers', part: 1 / 4 };

/** What all uploads of a process may have on disk at a time. */
class Budget {
  taken = 0;
  private readonly bySharer = new Map<string, number>();

  constructor(private readonly max: number) {}

  /** @throws Busy */
  assertRoom(sharers: readonly Sharer[], bytes = 1): void {
    const isFull = ({ name, part }: Sharer) => (this.bySharer.get(name) ?? 0) + bytes > this.max * part;
    if (this.taken + bytes > this.max || sharers.some(isFull)) throw noRoom();
  }

  add(sharers: readonly Sharer[], bytes: number): void {
    this.taken += bytes;
    for (const { name } of sharers) {
      const own = (this.bySharer.get(name) ?? 0) + bytes;
      if (own === 0) this.bySharer.delete(name);
      else this.bySharer.set(name, own);
    }
  }
}

/** What one upload has of it. */
class Share {
  private bytes = 0;

  constructor(
    private readonly budget: Budget,
    private readonly sharers: readonly Sharer[],
  ) {}

  /** @throws Busy */
  take(bytes: number): void {
    this.budget.assertRoom(this.sharers, bytes);
    this.budget.add(this.sharers, bytes);
    this.bytes += bytes;
  }

  giveBack(): void {
    this.budget.add(this.sharers, -this.bytes);
    this.bytes = 0;
  }
}

/** The files of one upload. */
class Spool {
  private readonly paths: string[] = [];

  constructor(
    private readonly directory: string,
    private readonly share: Share,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {}

  /** @returns undefined for a file that a form has no choice for: without a name, and empty */
  async keep({ field, filename, bytes }: FilePart): Promise<UploadedFile | undefined> {
    const file = path.join(this.directory, randomUUID());
    this.paths.push(file);
    const digest = createHash('sha256');
    let size = 0;
    const counted = async function* (this: Spool, pieces: AsyncIterable<Uint8Array>) {
      for await (const piece of pieces) {
        this.share.take(piece.length);
        size += piece.length;
        digest.update(piece);
        yield piece;
      }
    }.bind(this);
    await pipeline(bytes, counted, createWriteStream(file, { flags: 'wx', mode: 0o600 })).catch((error) => {
      if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
      this.alarm('an upload cannot be written', error);
      throw noRoom();
    });
    if (size === 0 && filename === '') return undefined;
    const mediaType = await mediaTypeOfFile(file);
    return { field, filename, mediaType, path: file, size, sha256: digest.digest('hex') };
  }

  /** Whoever has one of them open may read it on. */
  discard(): void {
    const removed = this.paths.splice(0).map((file) => rm(file, { force: true }));
    void Promise.all(removed)
      .catch((error) => this.alarm('files of an upload cannot be deleted', error))
      .finally(() => this.share.giveBack());
  }
}
