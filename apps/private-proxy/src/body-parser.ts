/** Reads request bodies into memory, and limits their total size. A body counts until its response has ended. */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ByteAccumulator } from '#application/messages';
import { ProxyError } from './proxy-error.ts';

/** The gateway accepts 25 MiB of ciphertext, which is longer than the plaintext. */
export const MAX_BODY_BYTES = 24 * 1024 * 1024;
/** Limit for all bodies in memory together. Beyond it, requests get a 503. */
const MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024;
const RETRY_AFTER_SECONDS = 5;

declare module 'fastify' {
  interface FastifyRequest {
    /** Bytes of the body that have arrived so far. */
    bodyBytes: number;
  }
}

/**
 * Makes all routes of this instance receive JSON bodies as bytes, and removes all other body parsers. Called before the
 * server starts.
 * @param maxBytes limit for all bodies in memory together
 */
export function registerBodyParser(app: FastifyInstance, maxBytes = MAX_BYTES_IN_FLIGHT): void {
  let bytesInMemory = 0;
  const reserveMemory = (request: FastifyRequest, bytes: number) => {
    bytesInMemory += bytes;
    request.bodyBytes += bytes;
    if (request.bodyBytes > MAX_BODY_BYTES) throw BODY_TOO_LARGE;
    if (bytesInMemory > maxBytes) throw TOO_BUSY;
  };
  app.decorateRequest('bodyBytes', 0);
  app.addHook('preParsing', async (request, reply) => {
    reply.raw.once('close', () => {
      bytesInMemory -= request.bodyBytes;
    });
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    if (Number(request.headers['content-length']) > MAX_BODY_BYTES) throw BODY_TOO_LARGE;
    const body = new ByteAccumulator();
    try {
      for await (const chunk of payload.iterator({ destroyOnReturn: false })) {
        reserveMemory(request, chunk.length);
        body.add(chunk);
      }
    } finally {
      payload.resume();
    }
    return body.bytes;
  });
}

export const BODY_TOO_LARGE = new ProxyError(413, `The body must not be longer than ${MAX_BODY_BYTES} bytes`, {
  code: 'too_large',
});
const TOO_BUSY = new ProxyError(503, 'The bodies of the running requests use too much memory; retry later', {
  code: 'too_busy',
  retryAfterSeconds: RETRY_AFTER_SECONDS,
});
