import { randomUUID } from 'node:crypto';
import { NotFoundException, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Settings, StartError } from '#infra';
import { type Role, rootOf } from '#modules';
import { assertParsable } from './edge/bounds.ts';
import { Authenticator, findCallers, MAX_BODY_BYTES } from './edge/caller.ts';
import { answerTo, InvalidRequest, refuseBroken, sendError, UNEXPECTED } from './edge/errors.ts';
import { watchMethods } from './edge/methods.ts';
import { PublicAddress } from './edge/public-address.ts';
import { recordSent } from './edge/recording.ts';
import { GatewayModule } from './gateway.module.ts';

const CORS = {
  origin: '*',
  allowedHeaders:
    '*, authorization, api-key, x-api-key, x-credit-id, x-query-source, x-private-model, ehbp-encapsulated-key, content-type, idempotency-key',
  exposedHeaders:
    'x-request-id, request-id, x-generation-id, ehbp-response-nonce, www-authenticate, payment-receipt, retry-after, idempotent-replayed',
  methods: 'GET, POST, PATCH, DELETE, OPTIONS',
  maxAge: 86_400,
  // OPTIONS is answered for every path, also to a client that is no browser.
  strictPreflight: false,
  // After `onRequest`, so that the answer to a preflight carries its request's id as well.
  hook: 'preParsing' as const,
};

/** How long a request may take to arrive: as long as the largest body over a slow line. */
const RECEIVED_WITHIN_MS = 300_000;

/**
 * Starts the HTTP gateway: one container with its modules, and with those that run beside it in the same process. These
 * start before it, and drain after it.
 */
export async function openGateway(role: Role, ...beside: readonly Type[]) {
  const app = await createApp(role, beside);
  const api = await listen(app, role.settings);
  app.get(PublicAddress).url = role.settings.publicBaseUrl ?? api;
  return { app, api };
}

async function createApp(role: Role, beside: readonly Type[]): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: RECEIVED_WITHIN_MS,
    clientErrorHandler: refuseBroken,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      reply.header('x-request-id', request.id);
      sendError(reply, answerTo(error) ?? UNEXPECTED);
    },
  });
  const root = rootOf(role, [...beside, GatewayModule]);
  const app = await NestFactory.create<NestFastifyApplication>(root, adapter, {
    logger: false,
    bodyParser: false,
    abortOnError: false,
  });
  await role.keep(app);
  const fastify = adapter.getInstance() as unknown as FastifyInstance;
  prepare(fastify);
  findCallers(fastify, app.get(Authenticator));
  const refuseOtherMethods = watchMethods(fastify);
  app.enableCors(CORS);
  refuseUnknownPaths(fastify);
  await app.init();
  refuseOtherMethods();
  return app;
}

/**
 * A JSON body may be empty: clients send the header with every POST. Every answer carries its request's id. Nothing has
 * a NUL in its name, and PostgreSQL would not even look for it.
 */
function prepare(fastify: FastifyInstance): void {
  const parseJson = fastify.getDefaultJsonParser('error', 'error');
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') return done(null, undefined);
    try {
      assertParsable(body as string);
    } catch (error) {
      return done(error as Error);
    }
    void parseJson(request, body as string, done);
  });
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    // Where Anthropic's clients look for it.
    if (request.routeOptions.config?.operation?.errorShape === 'anthropic') reply.header('request-id', request.id);
    done(request.url.includes('%00') ? new InvalidRequest('The address has a NUL in it') : undefined);
  });
  fastify.addHook('onSend', recordSent);
}

/** Before the body is read, and behind CORS, whose hook is there once its plugin is loaded. */
function refuseUnknownPaths(fastify: FastifyInstance): void {
  fastify.after(() => {
    fastify.addHook('preParsing', ({ is404, method, url }, _reply, _payload, done) => {
      done(is404 ? new NotFoundException(`Cannot ${method} ${url}`) : null);
    });
  });
}

async function listen(app: NestFastifyApplication, { port, host }: Settings): Promise<string> {
  try {
    await app.listen(port, host);
    return (await app.getUrl()).replace('[::1]', '127.0.0.1');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const busy = code === 'EADDRINUSE';
    throw new StartError(
      busy
        ? `Port ${port} is already in use; stop what listens there or set PORT.`
        : `The API cannot listen: ${message}.`,
    );
  }
}
