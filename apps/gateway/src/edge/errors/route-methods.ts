import { HttpException, MethodNotAllowedException } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ForbiddenError } from './errors.ts';
import { quotePath } from './quote-path.ts';

const UPGRADE_REQUIRED = 426;

/** CORS handles OPTIONS on every path. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Records the methods of every path that is declared after this call.
 * @returns a function to call once all routes are declared. From then on a request with another method gets `Allow` and
 * 405, or 426 if it requests a WebSocket, or 403 if its URL has a signature
 */
export function trackRouteMethods(fastify: FastifyInstance): () => void {
  const methodsByUrl = new Map<string, Set<string>>();
  fastify.addHook('onRoute', ({ url, method }) => {
    methodsByUrl.set(url, (methodsByUrl.get(url) ?? new Set()).union(new Set([method].flat())));
  });
  return () => {
    for (const [url, methods] of [...methodsByUrl]) if (url !== '*') rejectOtherMethods(fastify, url, methods);
  };
}

function rejectOtherMethods(fastify: FastifyInstance, url: string, allowed: ReadonlySet<string>): void {
  const method = METHODS.filter((name) => !allowed.has(name));
  const allow = METHODS.filter((name) => allowed.has(name)).join(', ');
  const createRejection = (request: FastifyRequest) => {
    if (isWebSocketRequest(request))
      return new HttpException(`This path does not support WebSocket; use ${allow}`, UPGRADE_REQUIRED);
    // A signature only permits reading, whatever it signs.
    if ((request.query as { readonly sig?: unknown }).sig !== undefined)
      return new ForbiddenError('A signed URL supports GET and HEAD only');
    return new MethodNotAllowedException(
      `${request.method} ${quotePath(request.url)} is not supported; this path supports ${allow} only`,
    );
  };
  fastify.route({
    method,
    url,
    exposeHeadRoute: false,
    // Before the body is read, and after CORS.
    preParsing: (request, reply, _payload, done) => {
      reply.header('allow', allow);
      if (isWebSocketRequest(request)) reply.headers({ upgrade: 'HTTP/1.1', connection: 'upgrade' });
      done(createRejection(request));
    },
    handler: (request) => Promise.reject(createRejection(request)),
  });
}

/**
 * Codex first tries a WebSocket on /v1/responses. After 426 it falls back to HTTP at once; after any other status it
 * tries six more times.
 */
function isWebSocketRequest({ headers }: FastifyRequest): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}
