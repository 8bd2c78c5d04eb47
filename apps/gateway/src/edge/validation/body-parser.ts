/** Decodes, limits and parses request bodies. */
import type { Readable } from 'node:stream';
import { Transform } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ByteAccumulator, HeavyWorkQueue, MAX_SMALL_JSON_BYTES } from '#application';
import { Rejection } from '#kernel';
import {
  MAX_ANONYMOUS_BODY_BYTES,
  MAX_ANONYMOUS_UPLOAD_BYTES,
  MAX_BODY_BYTES,
} from '../authentication/authenticator.ts';
import { BadRequestError, PayloadTooLargeError, UnsupportedMediaTypeError } from '../errors/errors.ts';
import { assertBodyWithinLimits } from '../limits/body-limits.ts';
import { JsonScanner } from '../limits/json-scanner.ts';
import { MemoryBudget, MemoryShare, resolveMemoryShareholders } from '../limits/memory-budget.ts';
import { ReadThrottle } from '../limits/read-throttle.ts';
import { isMultipart } from '../uploads/multipart.ts';
import { decompress } from './decompress.ts';

/**
 * Bodies with a content-length up to this size, and neither transfer nor content encoding, do not count towards the
 * memory budget. `ConnectionGuard` limits their number.
 */
const MAX_SMALL_BODY_BYTES = 16 * 1024;
/** Delay before closing the connection of a client that is still sending, so that the client reads the response. */
const CLOSE_DELAY_MS = 3_000;

declare module 'fastify' {
  interface FastifyRequest {
    /** The request's share of the memory budget; undefined for a small or streamed body without `reserveMemory`. */
    inMemory: MemoryShare | undefined;
    /** Whether the caller is an account that was ever credited; undefined for a small or streamed body. */
    isPayer: boolean | undefined;
  }
}

export interface BodyParserOptions {
  /** Limit of what is in memory at the same time: bodies that are not small, and data of `reserveMemory`. */
  readonly maxBytes: number;
  /** Parses large JSON. */
  readonly heavyWork: HeavyWorkQueue;
  /** Whether an account was ever credited. */
  isFunded(accountId: string): Promise<boolean>;
}

/**
 * Large JSON is read only from accounts that were credited, because accounts are free and parsing takes time.
 *
 * Bodies are JSON, unless the operation is `raw`, `streamed` or an upload; some uploads accept both. A JSON body may be
 * empty, because clients send the content type with every POST. A property `__proto__` is ordinary data: no code here
 * assigns the fields of a body one by one.
 */
export class BodyParser {
  private readonly budget: MemoryBudget;
  private readonly throttle = new ReadThrottle();

  constructor(private readonly options: BodyParserOptions) {
    this.budget = new MemoryBudget(options.maxBytes, 'Too many large requests at the moment; retry later');
  }

  /** Bytes that are currently in memory: of bodies that are not small, and of `reserveMemory`. */
  get usedBytes(): number {
    return this.budget.usedBytes;
  }

  /** Adds the parsers for routes that are declared after this call. */
  registerParsers(fastify: FastifyInstance): void {
    fastify.decorateRequest('inMemory', undefined);
    fastify.decorateRequest('isPayer', undefined);
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser('application/json', (request, payload: Readable, done) => {
      const scanner = new JsonScanner();
      const parse = (error: Error | null, body?: Buffer) => {
        if (error) return done(error);
        this.parse(request, body as Buffer, done);
      };
      collectBody(request, payload, parse, (chunk, size) => {
        scanner.scan(chunk);
        if (size <= MAX_SMALL_JSON_BYTES) return undefined;
        if (!request.isPayer) throw createUnfundedError();
        return this.throttle.count(chunk.length);
      });
    });
    fastify.addContentTypeParser(RAW_MEDIA_TYPE, (request, payload: Readable, done) => {
      if (request.routeOptions.config?.operation?.raw) collectBody(request, payload, done);
      else done(new UnsupportedMediaTypeError('The body must be application/json'));
    });
    fastify.addContentTypeParser(STREAM_MEDIA_TYPE, ({ routeOptions }, body, done) => {
      if (routeOptions.config?.operation?.streamed) done(null, body);
      else done(new UnsupportedMediaTypeError('The body must be application/json'));
    });
    fastify.addHook('onRoute', (route) => {
      const { raw, streamed } = route.config?.operation ?? {};
      if (!raw && !streamed) return;
      const setContentType = ({ headers }: FastifyRequest, _: unknown, done: () => void) => {
        headers['content-type'] = raw ? RAW_MEDIA_TYPE : STREAM_MEDIA_TYPE;
        done();
      };
      route.onRequest = [route.onRequest ?? [], setContentType].flat() as never;
    });
  }

  /** Parses a body. A large one waits for its turn, so that no other request waits for more than one step of it. */
  private parse(request: FastifyRequest, body: Buffer, done: (error: Error | null, body?: unknown) => void): void {
    if (body.length > MAX_SMALL_JSON_BYTES) {
      const steps = [() => body.toString(), parseText, assertWithinLimits];
      this.options.heavyWork
        .run(request.caller.accountId, body.length, steps)
        .then((parsed) => done(null, parsed), done);
      return;
    }
    try {
      done(null, assertWithinLimits(parseText(body.toString())));
    } catch (error) {
      done(error as Error);
    }
  }

  /**
   * Reserves memory of the budget for data that is read for a request, until the response has been sent.
   * @throws OverloadedError if the budget, or the fraction of the caller, has less than `bytes` left
   */
  async reserveMemory(reply: FastifyReply, bytes: number): Promise<void> {
    const share = reply.request.inMemory ?? (await this.getOrCreateShare(reply));
    if (!reply.raw.closed) share.reserve(bytes);
  }

  private async getOrCreateShare(reply: FastifyReply, isFunded = this.options.isFunded): Promise<MemoryShare> {
    const { request, raw } = reply;
    const share = new MemoryShare(this.budget, await resolveMemoryShareholders(request, isFunded));
    request.inMemory ??= share;
    if (request.inMemory === share) raw.once('close', () => share.freeAll());
    return request.inMemory;
  }

  /**
   * Creates the share of the memory budget, and determines whether the caller may send large JSON.
   * @throws Rejection if the caller sends large JSON and was never credited
   */
  private async admit(request: FastifyRequest, reply: FastifyReply, isLargeJson: boolean): Promise<void> {
    const { caller } = request;
    const isPayer = caller ? await this.options.isFunded(caller.accountId) : false;
    request.isPayer = isPayer;
    await this.getOrCreateShare(reply, async () => isPayer);
    if (isLargeJson && !request.isPayer) throw createUnfundedError();
  }

  /**
   * Adds hooks to every operation that is declared after this call. One follows the hook that identifies the caller by
   * the headers. It rejects bodies that are too large by their content-length, creates the share of the memory budget
   * for bodies that are neither small nor streamed, and decompresses bodies. The other one is `delayClose`.
   */
  registerBodyLimits(fastify: FastifyInstance): void {
    fastify.addHook('onRoute', (route) => {
      const { config, bodyLimit } = route;
      if (!config?.operation || bodyLimit === undefined) return;
      const { streamed, raw, upload } = config.operation;
      const isJson = !streamed && !raw && (!upload || upload.acceptsJson === true);
      const onPreParsing = (request: FastifyRequest, reply: FastifyReply, payload: Readable, done: Done) => {
        const limit = getBodyLimit(request);
        const length = Number(request.headers['content-length']);
        if (length > limit) done(createTooLargeError(limit));
        else if (isSmall(request)) done(null, payload);
        else if (streamed) unpack(request, reply, payload, done);
        else
          this.admit(request, reply, isJson && !isMultipart(request.headers) && length > MAX_SMALL_JSON_BYTES).then(
            () => unpack(request, reply, payload, done),
            done,
          );
      };
      route.preParsing = [route.preParsing ?? [], onPreParsing].flat() as never;
      route.onSend = [route.onSend ?? [], delayClose].flat() as never;
    });
  }
}

/** Internal media type of a buffered body that is not parsed, whatever type the client sent. */
const RAW_MEDIA_TYPE = 'application/octet-stream';
/** Internal media type of a streamed body, whatever type the client sent. */
const STREAM_MEDIA_TYPE = 'application/x-stream';

type Done = (error: Error | null, payload?: Readable) => void;

/** The content-length is reliable only without transfer and content encoding. */
function isSmall({ headers }: FastifyRequest): boolean {
  const length = Number(headers['content-length'] ?? 0);
  return length <= MAX_SMALL_BODY_BYTES && !headers['transfer-encoding'] && !headers['content-encoding'];
}

function unpack(request: FastifyRequest, reply: FastifyReply, payload: Readable, done: Done): void {
  try {
    done(null, decodeBody(request, reply, payload));
  } catch (error) {
    done(error as Error);
  }
}

/**
 * Returns the body without its content encoding.
 * @throws UnsupportedMediaTypeError for an encoding other than gzip, and for any encoding of a streamed body
 */
function decodeBody(request: FastifyRequest, reply: FastifyReply, payload: Readable): Readable {
  const { headers, routeOptions } = request;
  const limit = getBodyLimit(request);
  const encoding = headers['content-encoding']?.toLowerCase().trim() ?? 'identity';
  if (routeOptions.config.operation?.streamed) {
    if (encoding !== 'identity') throw new UnsupportedMediaTypeError('The body must not be compressed');
    return limitSize(payload, limit);
  }
  if (encoding === 'identity') return payload;
  if (encoding === 'gzip' || encoding === 'x-gzip') return decompress(payload, limit);
  reply.header('accept-encoding', 'gzip');
  throw new UnsupportedMediaTypeError('The body must be uncompressed or compressed with gzip');
}

/** Closes the connection if the body has still not arrived entirely `CLOSE_DELAY_MS` after the response. */
function delayClose(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  done: (_: null, p: unknown) => void,
) {
  if (!raw.complete) {
    reply.removeHeader('connection');
    const end = () => void (raw.complete || raw.socket.destroy());
    reply.raw.once('finish', () => setTimeout(end, CLOSE_DELAY_MS).unref());
  }
  done(null, payload);
}

/**
 * Buffers a body up to its limit. Counts it towards the memory budget unless it is small.
 * @param inspect called for each chunk; if it returns a promise, no more is read until that resolves
 */
function collectBody(
  request: FastifyRequest,
  payload: Readable,
  done: (error: Error | null, body?: Buffer) => void,
  inspect?: (chunk: Buffer, size: number) => Promise<void> | undefined,
): void {
  const limit = getBodyLimit(request);
  const { 'content-length': length, 'content-encoding': encoding } = request.headers;
  const body = new ByteAccumulator(length !== undefined && encoding === undefined ? Number(length) : limit);
  const end = (error: Error | null) => {
    payload.off('data', onData).off('end', onEnd).off('error', onError);
    if (!error) return done(null, body.bytes);
    payload.on('error', () => {}).resume();
    done(error);
  };
  const onData = (chunk: Buffer) => {
    if (body.size + chunk.length > limit) return end(createTooLargeError(limit));
    try {
      request.inMemory?.reserve(chunk.length);
      const pause = inspect?.(chunk, body.size + chunk.length);
      body.add(chunk);
      if (pause) {
        payload.pause();
        void pause.then(() => payload.resume());
      }
    } catch (error) {
      end(error as Error);
    }
  };
  const onEnd = () => end(null);
  const onError = (error: Error & { readonly statusCode?: number }) =>
    end(error.statusCode ? error : new BadRequestError('The request body ended early'));
  payload.on('data', onData).on('end', onEnd).on('error', onError);
}

/** Returns the limit of a body in bytes, which may be lower for anonymous callers and for JSON instead of a form. */
function getBodyLimit({ anonymousCaller, routeOptions, headers }: FastifyRequest): number {
  const { upload } = routeOptions.config.operation ?? {};
  const isJson = !upload || (upload.acceptsJson && !isMultipart(headers));
  const limit = upload && isJson ? MAX_BODY_BYTES : (routeOptions.bodyLimit as number);
  return anonymousCaller ? Math.min(limit, isJson ? MAX_ANONYMOUS_BODY_BYTES : MAX_ANONYMOUS_UPLOAD_BYTES) : limit;
}

function createTooLargeError(limit: number): PayloadTooLargeError {
  return new PayloadTooLargeError(`The body must have at most ${limit} bytes`);
}

function createUnfundedError(): Rejection<string> {
  return new Rejection(
    'insufficient_balance',
    `Insufficient balance: bodies of more than ${MAX_SMALL_JSON_BYTES} bytes require an account that was credited`,
  );
}

/** Forwards a body. Fails with PayloadTooLargeError beyond the limit. */
function limitSize(payload: Readable, limit: number): Readable {
  let size = 0;
  const limiter = new Transform({
    transform(chunk: Buffer, _, done) {
      size += chunk.length;
      if (size <= limit) return done(null, chunk);
      payload.unpipe(limiter);
      payload.resume();
      done(createTooLargeError(limit));
    },
  });
  payload.once('error', (error) => limiter.destroy(error));
  return payload.pipe(limiter);
}

/** @throws BadRequestError for invalid JSON */
function parseText(text: string): unknown {
  if (text === '') return undefined;
  return parseJson(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
}

/** @throws BadRequestError for a body above the limits that apply to every operation */
function assertWithinLimits(body: unknown): unknown {
  assertBodyWithinLimits(body);
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadRequestError('The body is not valid JSON');
  }
}

const BYTE_ORDER_MARK = 0xfeff;
