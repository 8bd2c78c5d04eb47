/** How a body becomes JSON: its encoding, and what it may be. */
import type { Readable } from 'node:stream';
import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { assertParsable } from './bounds.ts';
import { MAX_VISITOR_BYTES, MAX_VISITOR_UPLOAD_BYTES } from './caller.ts';
import { InvalidRequest, TooLarge, UnsupportedMedia } from './errors.ts';

/** From here on a body that is packed more densely is no request, but an attempt to keep us busy. */
const DENSE_FROM_BYTES = 1024 * 1024;
const MAX_RATIO = 100;

/**
 * Bodies are JSON. One may be empty: clients send the header with every POST. A property `__proto__` is data as any other:
 * nothing here assigns what a body has field by field.
 */
export function readBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    try {
      done(null, parsed(body as string));
    } catch (error) {
      done(error as Error);
    }
  });
  fastify.addContentTypeParser(RAW, { parseAs: 'buffer' }, ({ routeOptions }, body, done) => {
    if (routeOptions.config?.operation?.raw) done(null, body);
    else done(new UnsupportedMedia('The body must be application/json'));
  });
  fastify.addContentTypeParser(STREAM, ({ routeOptions }, body, done) => {
    if (routeOptions.config?.operation?.streamed) done(null, body);
    else done(new UnsupportedMedia('The body must be application/json'));
  });
  fastify.addHook('onRoute', (route) => {
    const { raw, streamed } = route.config?.operation ?? {};
    if (!raw && !streamed) return;
    const asItComes = ({ headers }: FastifyRequest, _: unknown, done: () => void) => {
      headers['content-type'] = raw ? RAW : STREAM;
      done();
    };
    route.onRequest = [route.onRequest ?? [], asItComes].flat() as never;
  });
}

/** Bodies that are not read as anything, whatever their senders call them: in one piece, and as they come. */
const RAW = 'application/octet-stream';
const STREAM = 'application/x-stream';

/** Adds a hook to every operation that is declared from now on, behind that which finds the caller: it unpacks the body. */
export function unpackBodies(fastify: FastifyInstance): void {
  fastify.addHook('onRoute', (route) => {
    const { config, bodyLimit } = route;
    if (!config?.operation || bodyLimit === undefined) return;
    const unpack = (
      request: FastifyRequest,
      reply: { header(name: string, value: string): unknown },
      payload: Readable,
      done: (error: Error | null, payload?: Readable) => void,
    ) => {
      const { headers } = request;
      const limit = limitOf(request, bodyLimit);
      if (limit < bodyLimit && Number(headers['content-length']) > limit) return done(tooLarge(limit));
      const encoding = headers['content-encoding']?.toLowerCase().trim() ?? 'identity';
      const isStream = config.operation?.streamed;
      if (encoding !== 'identity' && isStream) return done(new UnsupportedMedia('The body may not be compressed'));
      if (isStream) return done(null, bounded(payload, limit));
      if (encoding === 'identity') return done(null, limit < bodyLimit ? bounded(payload, limit) : payload);
      if (encoding === 'gzip' || encoding === 'x-gzip') return done(null, unpacked(payload, limit));
      reply.header('accept-encoding', 'gzip');
      done(new UnsupportedMedia('The body may be compressed with gzip only'));
    };
    route.preParsing = [route.preParsing ?? [], unpack].flat() as never;
  });
}

/** Before anything is paid. */
function limitOf({ visitor, routeOptions }: FastifyRequest, limit: number): number {
  if (!visitor) return limit;
  const most = routeOptions.config.operation?.upload ? MAX_VISITOR_UPLOAD_BYTES : MAX_VISITOR_BYTES;
  return Math.min(limit, most);
}

function tooLarge(limit: number): TooLarge {
  return new TooLarge(`The body must have at most ${limit} bytes`);
}

/** The same body, up to so many bytes. */
function bounded(payload: Readable, limit: number): Readable {
  let size = 0;
  const counted = new Transform({
    transform(piece: Buffer, _, done) {
      size += piece.length;
      if (size <= limit) return done(null, piece);
      payload.unpipe(counted);
      payload.resume();
      done(tooLarge(limit));
    },
  });
  payload.once('error', (error) => counted.destroy(error));
  return payload.pipe(counted);
}

function parsed(text: string): unknown {
  if (text === '') return undefined;
  assertParsable(text);
  try {
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
  } catch {
    throw new InvalidRequest('The body is not valid JSON');
  }
}

const BYTE_ORDER_MARK = 0xfeff;

/** What is packed in a body, up to so many bytes. It stops where there is more, and reads no further. */
function unpacked(payload: Readable, limit: number): Readable {
  const unzip = createGunzip();
  let size = 0;
  const bounded = new Transform({
    transform(piece: Buffer, _, done) {
      size += piece.length;
      const dense = size > DENSE_FROM_BYTES && size > unzip.bytesWritten * MAX_RATIO;
      if (size <= limit && !dense) return done(null, piece);
      stop();
      done(
        new TooLarge(dense ? 'The body is packed too densely' : `The body must have at most ${limit} bytes, unpacked`),
      );
    },
  });
  const stop = () => {
    payload.unpipe(unzip);
    unzip.destroy();
    payload.resume();
  };
  bounded.on('error', () => {}); // Fastify does not listen where it has refused the body by its Content-Length
  payload.once('error', (error) => bounded.destroy(error));
  unzip.once('error', () => {
    stop();
    bounded.destroy(new InvalidRequest('The body is not valid gzip'));
  });
  // Fastify compares it with the Content-Length.
  Object.defineProperty(bounded, 'receivedEncodedLength', { get: () => unzip.bytesWritten });
  return payload.pipe(unzip).pipe(bounded);
}
