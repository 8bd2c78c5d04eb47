/** How a body becomes JSON: its encoding, and what it may be. */
import type { Readable } from 'node:stream';
import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ByteAccumulator } from '#application';
import { MAX_ANONYMOUS_BODY_BYTES, MAX_ANONYMOUS_UPLOAD_BYTES } from '../authentication/authenticator.ts';
import { BadRequestError, PayloadTooLargeError, UnsupportedMediaTypeError } from '../errors/errors.ts';
import { assertBodyWithinLimits, assertJsonWithinLimits } from '../limits/body-limits.ts';
import { MemoryBudget, MemoryShare, resolveMemoryShareholders } from '../limits/memory-budget.ts';

/** From here on a body that is packed more densely is no request, but an attempt to keep us busy. */
const MIN_DENSITY_CHECK_BYTES = 1024 * 1024;
const MAX_COMPRESSION_RATIO = 100;

/** Bodies up to this size are taken without a look at how many there are: there are as many as connections. */
const MAX_SMALL_BODY_BYTES = 16 * 1024;
/** A client that is still sending when it is refused may not read the answer if its connection ends at once. */
const CLOSE_DELAY_MS = 3_000;

declare module 'fastify' {
  interface FastifyRequest {
    /** What its body has of the memory for bodies; undefined for one that is small, or goes on as it comes. */
    inMemory: MemoryShare | undefined;
  }
}

export interface BodyParserOptions {
  /** Bytes of all bodies that are in memory at a time, as they came or unpacked. */
  readonly maxBytes: number;
  /** Whether an account has ever been credited. */
  isFunded(accountId: string): Promise<boolean>;
}

/**
 * Bodies are JSON. One may be empty: clients send the header with every POST. A property `__proto__` is data as any other:
 * nothing here assigns what a body has field by field.
 */
export class BodyParser {
  private readonly budget: MemoryBudget;

  constructor(private readonly options: BodyParserOptions) {
    this.budget = new MemoryBudget(options.maxBytes, 'Too much is being sent at the moment; try again soon');
  }

  /** Bytes of bodies that are in memory now, small ones left out. */
  get usedBytes(): number {
    return this.budget.usedBytes;
  }

  /** For routes that are declared from now on. */
  registerParsers(fastify: FastifyInstance): void {
    fastify.decorateRequest('inMemory', undefined);
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser('application/json', (request, payload: Readable, done) => {
      collectBody(request, payload, (error, body) => {
        if (error) return done(error);
        try {
          done(null, parseBody((body as Buffer).toString()));
        } catch (error) {
          done(error as Error);
        }
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

  /**
   * Takes of the same memory what is read for a request, whose body may be small, until it is answered.
   * @throws OverloadedError
   */
  async reserveMemory(reply: FastifyReply, bytes: number): Promise<void> {
    const share = reply.request.inMemory ?? (await this.getOrCreateShare(reply));
    if (!reply.raw.closed) share.reserve(bytes);
  }

  private async getOrCreateShare(reply: FastifyReply): Promise<MemoryShare> {
    const { request, raw } = reply;
    const share = new MemoryShare(this.budget, await resolveMemoryShareholders(request, this.options.isFunded));
    request.inMemory ??= share;
    if (request.inMemory === share) raw.once('close', () => share.freeAll());
    return request.inMemory;
  }

  /**
   * Adds a hook to every operation that is declared from now on, behind that which finds the caller: it refuses what says that it is
   * too large, before anything is looked up for it, finds the body's share of the memory, and unpacks it.
   */
  registerBodyLimits(fastify: FastifyInstance): void {
    fastify.addHook('onRoute', (route) => {
      const { config, bodyLimit } = route;
      if (!config?.operation || bodyLimit === undefined) return;
      const { streamed } = config.operation;
      const onPreParsing = (request: FastifyRequest, reply: FastifyReply, payload: Readable, done: Done) => {
        const limit = getBodyLimit(request);
        if (Number(request.headers['content-length']) > limit) done(createTooLargeError(limit));
        else if (isSmall(request)) done(null, payload);
        else if (streamed) unpack(request, reply, payload, done);
        else this.getOrCreateShare(reply).then(() => unpack(request, reply, payload, done), done);
      };
      route.preParsing = [route.preParsing ?? [], onPreParsing].flat() as never;
      route.onSend = [route.onSend ?? [], delayClose].flat() as never;
    });
  }
}

/** Bodies that are not read as anything, whatever their senders call them: in one piece, and as they come. */
const RAW_MEDIA_TYPE = 'application/octet-stream';
const STREAM_MEDIA_TYPE = 'application/x-stream';

type Done = (error: Error | null, payload?: Readable) => void;

/** It is as long as it says, and as it is. */
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

/** The body without its encoding. @throws UnsupportedMediaTypeError */
function decodeBody(request: FastifyRequest, reply: FastifyReply, payload: Readable): Readable {
  const { headers, routeOptions } = request;
  const limit = getBodyLimit(request);
  const encoding = headers['content-encoding']?.toLowerCase().trim() ?? 'identity';
  if (routeOptions.config.operation?.streamed) {
    if (encoding !== 'identity') throw new UnsupportedMediaTypeError('The body may not be compressed');
    return limitSize(payload, limit);
  }
  if (encoding === 'identity') return payload;
  if (encoding === 'gzip' || encoding === 'x-gzip') return decompress(payload, limit);
  reply.header('accept-encoding', 'gzip');
  throw new UnsupportedMediaTypeError('The body may be compressed with gzip only');
}

/** What still comes is taken and thrown away for a while. */
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

/** Puts the pieces of a body together. */
function collectBody(
  request: FastifyRequest,
  payload: Readable,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const limit = getBodyLimit(request);
  const body = new ByteAccumulator();
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
      body.add(chunk);
    } catch (error) {
      end(error as Error);
    }
  };
  const onEnd = () => end(null);
  const onError = (error: Error & { readonly statusCode?: number }) =>
    end(error.statusCode ? error : new BadRequestError('The body broke off'));
  payload.on('data', onData).on('end', onEnd).on('error', onError);
}

/** Of a body, which is lower before anything is paid. */
function getBodyLimit({ anonymousCaller, routeOptions }: FastifyRequest): number {
  const limit = routeOptions.bodyLimit as number;
  if (!anonymousCaller) return limit;
  const anonymousLimit = routeOptions.config.operation?.upload ? MAX_ANONYMOUS_UPLOAD_BYTES : MAX_ANONYMOUS_BODY_BYTES;
  return Math.min(limit, anonymousLimit);
}

function createTooLargeError(limit: number): PayloadTooLargeError {
  return new PayloadTooLargeError(`The body must have at most ${limit} bytes`);
}

/** The same body, up to so many bytes. */
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

/** @throws BadRequestError where it is no JSON, or goes beyond the bounds of any body, whether anybody looks into it or not */
function parseBody(text: string): unknown {
  if (text === '') return undefined;
  assertJsonWithinLimits(text);
  const body = parseJson(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
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

/** What is packed in a body, up to so many bytes. It stops where there is more, and reads no further. */
function decompress(payload: Readable, limit: number): Readable {
  const unzip = createGunzip();
  let size = 0;
  const limiter = new Transform({
    transform(chunk: Buffer, _, done) {
      size += chunk.length;
      const isTooDense = size > MIN_DENSITY_CHECK_BYTES && size > unzip.bytesWritten * MAX_COMPRESSION_RATIO;
      if (size <= limit && !isTooDense) return done(null, chunk);
      stop();
      done(
        new PayloadTooLargeError(
          isTooDense ? 'The body is packed too densely' : `The body must have at most ${limit} bytes, unpacked`,
        ),
      );
    },
  });
  const stop = () => {
    payload.unpipe(unzip);
    unzip.destroy();
    payload.resume();
  };
  limiter.on('error', () => {}); // nobody listens yet, or any more
  payload.once('error', (error) => limiter.destroy(error));
  unzip.once('error', () => {
    stop();
    limiter.destroy(new BadRequestError('The body is not valid gzip'));
  });
  return payload.pipe(unzip).pipe(limiter);
}
