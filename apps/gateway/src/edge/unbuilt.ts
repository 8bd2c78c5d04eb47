import type { FastifyInstance } from 'fastify';
import { NotBuilt } from './errors.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Paths of the specification that are not served yet. */
const PATHS = ['/private/attestation', '/private/v1/chat/completions'];

/** Answers 501 where something will be, so that a client does not take its address for wrong. */
export function refuseUnbuilt(fastify: FastifyInstance): void {
  for (const url of PATHS) {
    const refusal = () => new NotBuilt('This part of the interface is not served yet');
    fastify.route({
      method: METHODS,
      url,
      exposeHeadRoute: false,
      // Before the body is read, after CORS.
      preParsing: (_request, _reply, _payload, done) => done(refusal()),
      handler: () => Promise.reject(refusal()),
    });
  }
}
