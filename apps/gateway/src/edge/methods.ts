import { MethodNotAllowedException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';

/** OPTIONS is answered for every path, by CORS. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Watches which methods each path has.
 * @returns what to call once all routes are there: from then on, other methods are refused with 405 and `Allow`
 */
export function watchMethods(fastify: FastifyInstance): () => void {
  const known = new Map<string, Set<string>>();
  fastify.addHook('onRoute', ({ url, method }) => {
    known.set(url, (known.get(url) ?? new Set()).union(new Set([method].flat())));
  });
  return () => {
    for (const [url, methods] of [...known]) if (url !== '*') refuseOthers(fastify, url, methods);
  };
}

function refuseOthers(fastify: FastifyInstance, url: string, allowed: ReadonlySet<string>): void {
  const method = METHODS.filter((each) => !allowed.has(each));
  const allow = METHODS.filter((each) => allowed.has(each)).join(', ');
  const refusal = () => new MethodNotAllowedException(`This path takes ${allow} only`);
  fastify.route({
    method,
    url,
    exposeHeadRoute: false,
    // Before the body is read, after CORS.
    preParsing: (_request, reply, _payload, done) => {
      reply.header('allow', allow);
      done(refusal());
    },
    handler: () => Promise.reject(refusal()),
  });
}
