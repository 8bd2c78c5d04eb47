import { randomUUID } from 'node:crypto';
import { NotFoundException, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RateLimiter } from '#application';
import { ConnectionGuard, SERVER_TIMEOUTS, type Settings, StartError } from '#foundation';
import { createRootModule, NestLog, type ProcessRole } from '#modules';
import { Authenticator, MAX_BODY_BYTES, registerAuthentication } from './edge/authentication/authenticator.ts';
import { usesAnthropicApi } from './edge/errors/error-formats.ts';
import { BadRequestError, INTERNAL_ERROR, sendError, toErrorResponse } from './edge/errors/errors.ts';
import { MalformedRequestHandlers } from './edge/errors/malformed-requests.ts';
import { quotePath } from './edge/errors/quote-path.ts';
import { trackRouteMethods } from './edge/errors/route-methods.ts';
import { PublicBaseUrl } from './edge/network/public-base-url.ts';
import { PayPerRequestGate } from './edge/pay-per-request/pay-per-request-gate.ts';
import { getSecurityHeaders, setCacheHeaders } from './edge/responses/response-headers.ts';
import { handleOnSend } from './edge/responses/response-recording.ts';
import { Uploads } from './edge/uploads/uploads.ts';
import { BodyParser } from './edge/validation/body-parser.ts';
import { GatewayModule } from './gateway.module.ts';
import { AudioServer } from './media/audio/audio-server.ts';
import { RESPONSE_HEADERS } from './openapi/headers.ts';

const CORS = {
  origin: '*',
  allowedHeaders:
    '*, authorization, api-key, x-api-key, x-credit-id, x-query-source, x-private-model, ehbp-encapsulated-key, content-type, idempotency-key',
  exposedHeaders: [...Object.keys(RESPONSE_HEADERS), 'accept-ranges', 'content-range', 'etag'].join(', '),
  methods: 'GET, POST, PATCH, DELETE, OPTIONS',
  maxAge: 86_400,
  // Responds to OPTIONS on every path, also to clients that are not browsers.
  strictPreflight: false,
  // Runs after `onRequest`, so that a preflight response also has its request id.
  hook: 'preParsing' as const,
};

/** Maximum time for a request to arrive. It allows for one file of the maximum size over a slow connection. */
const REQUEST_TIMEOUT_MS = 300_000;

/**
 * Starts the HTTP gateway in one Nest container, together with the modules of other roles that run in the same process.
 * These modules start before the gateway and drain after it.
 * @returns the application, and the base URLs of the API and of the audio API
 */
export async function openGateway(role: ProcessRole, ...extraModules: readonly Type[]) {
  const app = await createApp(role, extraModules);
  const connections = app.get(ConnectionGuard);
  connections.guard(app.getHttpServer());
  const api = await listen(app, role.settings);
  app.get(PublicBaseUrl).url = role.settings.publicBaseUrl ?? api;
  return { app, api, audioApi: await listenForAudio(app, role.settings, api, connections) };
}

async function createApp(role: ProcessRole, extraModules: readonly Type[]): Promise<NestFastifyApplication> {
  const { trustedProxies } = role.settings;
  const securityHeaders = getSecurityHeaders(role.settings);
  const malformed = new MalformedRequestHandlers(securityHeaders);
  const adapter = new FastifyAdapter({
    ...(trustedProxies.length > 0 ? { trustProxy: [...trustedProxies] } : {}),
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { ignoreTrailingSlash: true },
    http: { requireHostHeader: false, ...SERVER_TIMEOUTS },
    clientErrorHandler: malformed.handleClientError,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    return503OnClosing: false, // requests on open connections are still served
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      reply.headers({ ...getCommonHeaders(request), ...securityHeaders });
      setCacheHeaders(reply);
      sendError(reply, toErrorResponse(error) ?? INTERNAL_ERROR);
    },
  });
  const root = createRootModule(role, [...extraModules, GatewayModule]);
  const app = await NestFactory.create<NestFastifyApplication>(root, adapter, {
    logger: new NestLog(role.log),
    bodyParser: false,
    abortOnError: false,
  });
  await role.closeOnExit(app);
  const fastify = adapter.getInstance() as unknown as FastifyInstance;
  const bodies = app.get(BodyParser);
  bodies.registerParsers(fastify);
  malformed.register(fastify.server);
  registerHooks(fastify, securityHeaders);
  registerAuthentication(fastify, app.get(Authenticator), app.get(PayPerRequestGate), app.get(RateLimiter));
  app.get(AudioServer).restrictPaths(fastify);
  bodies.registerBodyLimits(fastify);
  app.get(Uploads).registerParser(fastify);
  const rejectOtherMethods = trackRouteMethods(fastify);
  app.enableCors(CORS);
  rejectUnknownPaths(fastify);
  await app.init();
  rejectOtherMethods();
  return app;
}

/** Adds the hooks of all routes. */
function registerHooks(fastify: FastifyInstance, securityHeaders: Readonly<Record<string, string>>): void {
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.headers({ ...getCommonHeaders(request), ...securityHeaders });
    // Anthropic's clients read the request id from this header.
    if (usesAnthropicApi(request)) reply.header('request-id', request.id);
    done(findRequestError(request));
  });
  fastify.addHook('onSend', handleOnSend);
}

/**
 * Returns the request id, and access from any origin. Every response has them, also errors of the framework, which are
 * sent without the hooks.
 */
function getCommonHeaders({ id }: FastifyRequest): Readonly<Record<string, string>> {
  return { 'x-request-id': id, 'access-control-allow-origin': '*' };
}

/**
 * Returns an error for a request that is invalid on every route: one with a NUL in the URL, which PostgreSQL cannot
 * store in text, or an HTTP/1.1 request without a Host header (RFC 9112, 3.2).
 */
function findRequestError({ url, headers, raw }: FastifyRequest): Error | undefined {
  if (url.includes('%00')) return new BadRequestError('The URL must not contain a NUL character (%00)');
  if (headers.host === undefined && raw.httpVersion === '1.1') return new BadRequestError('Missing Host header');
  return undefined;
}

/**
 * Responds with 404 to unknown paths before the body is read. `after` waits until the CORS plugin has added its hook,
 * which must run first.
 */
function rejectUnknownPaths(fastify: FastifyInstance): void {
  fastify.after(() => {
    fastify.addHook('preParsing', ({ is404, method, url }, _reply, _payload, done) => {
      done(is404 ? new NotFoundException(`${method} ${quotePath(url)} not found`) : null);
    });
  });
}

/** Listens on AUDIO_PORT, if it is set. Returns the base URL of the audio API: on that port, else on the main port. */
async function listenForAudio(
  app: NestFastifyApplication,
  settings: Settings,
  api: string,
  connections: ConnectionGuard,
): Promise<string> {
  const { audioPort, host } = settings;
  if (audioPort === undefined) return `${api}/api/v1`;
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  const malformed = new MalformedRequestHandlers(getSecurityHeaders(settings));
  return app.get(AudioServer).listen(fastify, audioPort, { host, connections, malformed });
}

async function listen(app: NestFastifyApplication, { port, host }: Settings): Promise<string> {
  try {
    await app.listen(port, host);
    return (await app.getUrl()).replace('[::1]', '127.0.0.1');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const isPortInUse = code === 'EADDRINUSE';
    throw new StartError(
      isPortInUse
        ? `Port ${port} is already in use; stop the process that uses it, or set PORT.`
        : `The API cannot listen: ${message}.`,
    );
  }
}
