/** Bodies of requests, which lie in memory until their answers have ended. */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ByteAccumulator } from '#application/messages';
import { ProxyError } from './proxy-error.ts';

/** The gateway takes 25 MiB, encrypted. */
export const MAX_BODY_BYTES = 24 * 1024 * 1024;
/** Of all of them together. */
const MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024;
const RETRY_AFTER_SECONDS = 5;

declare module 'fastify' {
  interface FastifyRequest {
    /** Of its body, in memory. */
    bodyBytes: number;
  }
}

/** For routes that are declared from now on: bodies are handed over as bytes. @param maxBytes of all that are in memory at a time */
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

export const BODY_TOO_LARGE = new ProxyError(413, `The body is longer than ${MAX_BODY_BYTES} bytes`, {
  code: 'too_large',
});
const TOO_BUSY = new ProxyError(503, 'Too much is being sent at the moment', {
  code: 'too_busy',
  retryAfterSeconds: RETRY_AFTER_SECONDS,
});
