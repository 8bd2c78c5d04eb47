import { HttpException, MethodNotAllowedException } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ForbiddenError } from './errors.ts';

const UPGRADE_REQUIRED = 426;

/** OPTIONS is answered for every path, by CORS. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Watches which methods each path has.
 * @returns what to call once all routes are there: from then on, other methods are refused with 405 and `Allow`, and with
 * 403 where the address is signed
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
      return new HttpException(`This path has no WebSocket, it takes ${allow} only`, UPGRADE_REQUIRED);
    // A signature is good for reading alone, whatever is signed.
    if ((request.query as { readonly sig?: unknown }).sig !== undefined)
      return new ForbiddenError('A signed address is for GET and HEAD only');
    return new MethodNotAllowedException(`This path takes ${allow} only`);
  };
  fastify.route({
    method,
    url,
    exposeHeadRoute: false,
    // Before the body is read, after CORS.
    preParsing: (request, reply, _payload, done) => {
      reply.header('allow', allow);
      if (isWebSocketRequest(request)) reply.headers({ upgrade: 'HTTP/1.1', connection: 'upgrade' });
      done(createRejection(request));
    },
    handler: (request) => Promise.reject(createRejection(request)),
  });
}

/** Codex asks POST /v1/responses for one first; told 426 it goes on without at once, told anything else it tries six times more. */
function isWebSocketRequest({ headers }: FastifyRequest): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}
