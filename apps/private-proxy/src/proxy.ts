/** The local server of the proxy: two protocols for programs, and a status page for users. */
import type { AddressInfo } from 'node:net';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { TokenCounter } from '#application/messages';
import { ConnectionGuard, type Log, SERVER_TIMEOUTS, StartError } from '#foundation/program';
import type { AttestationVerifier } from './attestation/attestation-verifier.ts';
import { MAX_BODY_BYTES, registerBodyParser } from './body-parser.ts';
import { getCallerRejection } from './caller-rejection.ts';
import { Enclaves } from './enclaves.ts';
import { Exchanges, parseJsonBody } from './exchanges.ts';
import { GatewayClient, PRIVATE_MODEL_PREFIX, type PrivateModel } from './gateway-client.ts';
import { PrivateChats } from './private-chats.ts';
import { PrivateModelResolver } from './private-model-resolver.ts';
import {
  ANTHROPIC_PROTOCOL,
  createMessageExchange,
  estimateMessageTokens,
  parseMessagesBody,
} from './protocols/anthropic.ts';
import type { ClientProtocol } from './protocols/client-protocol.ts';
import { createChatExchange, OPENAI_PROTOCOL } from './protocols/openai.ts';
import { ProxyError } from './proxy-error.ts';
import { type RequestLogFields, sendProxyError } from './send-response.ts';
import type { ProxySettings } from './settings.ts';
import { PAGE_HEADERS, renderStatusPage } from './status-page.ts';

/** Not a setting, because everyone who can reach the proxy can spend its money. */
const HOST = '127.0.0.1';
const MAX_CONNECTIONS = 1_000;
/** Maximum time to receive a request. */
const REQUEST_TIMEOUT_MS = 120_000;
/** How long running requests may continue when the proxy stops. */
const DRAIN_TIMEOUT_MS = 30_000;
const OWNED_BY = 'ppq-private';

declare module 'fastify' {
  interface FastifyRequest {
    logFields: RequestLogFields;
  }
}

export interface RunningProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** @throws StartError if the port is in use or not permitted */
export async function startProxy(
  settings: ProxySettings,
  verifier: AttestationVerifier,
  log: Log,
): Promise<RunningProxy> {
  const gateway = new GatewayClient(settings.gateway, settings.apiKey);
  const enclaves = new Enclaves(gateway, verifier, log);
  const exchanges = new Exchanges(
    new PrivateModelResolver(enclaves, settings.defaultModel),
    new PrivateChats(gateway, enclaves),
  );
  const tokenCounter = new TokenCounter();
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: SERVER_TIMEOUTS,
  });
  const connections = new ConnectionGuard({ max: MAX_CONNECTIONS, reportError: (problem) => log.warn(problem) });
  connections.guard(app.server);
  registerHooks(app, log);
  registerModelRoutes(app, enclaves, exchanges, tokenCounter);
  registerStatusRoutes(app, enclaves, settings);
  await listen(app, settings.port);
  if (settings.allowUnattested) log.warn('ALLOW_UNATTESTED=1: simulated enclaves are accepted without evidence');
  void enclaves.attestAll();
  return {
    url: `http://${HOST}:${(app.server.address() as AddressInfo).port}`,
    async close() {
      const closed = app.close();
      await exchanges.drain(DRAIN_TIMEOUT_MS);
      // Otherwise `closed` would wait for connections that never sent a request.
      app.server.closeAllConnections();
      await closed;
      connections.close();
      await gateway.close();
    },
  };
}

/** Registers the checks before a body is read, the error responses, and the log of requests. */
function registerHooks(app: FastifyInstance, log: Log): void {
  registerBodyParser(app);
  app.decorateRequest('logFields', undefined as unknown as RequestLogFields);
  app.addHook('onRequest', async (request, reply) => {
    request.logFields = { protocol: selectProtocol(request).name, responseBytes: 0 };
    // Not `onResponse`, which does not run if the connection is closed before the end of the response.
    reply.raw.once('close', () => logRequest(request, reply, log));
    const { port } = app.server.address() as AddressInfo;
    const rejection = getCallerRejection(request, port) ?? (request.is404 ? ROUTE_NOT_FOUND : undefined);
    if (!rejection) return;
    // The body is not read, so the connection cannot be reused.
    reply.header('connection', 'close');
    throw rejection;
  });
  app.setErrorHandler((error, request, reply) =>
    sendProxyError(reply, selectProtocol(request), request.logFields, translateServerError(error)),
  );
  app.setNotFoundHandler(() => {
    throw ROUTE_NOT_FOUND;
  });
}

function logRequest({ logFields, method, routeOptions }: FastifyRequest, reply: FastifyReply, log: Log): void {
  const { elapsedTime } = reply;
  const line = {
    ...logFields,
    method,
    route: routeOptions.url,
    status: reply.raw.statusCode,
    ms: Math.round(elapsedTime),
  };
  if (logFields.failed) log.warn(line, 'request failed');
  else log.debug(line, 'request served');
}

function registerModelRoutes(
  app: FastifyInstance,
  enclaves: Enclaves,
  exchanges: Exchanges,
  tokenCounter: TokenCounter,
): void {
  app.get('/v1/models', async () => {
    const models = await enclaves.listModels();
    return { object: 'list', data: models.map(toModelJson) };
  });
  app.get<{ Params: { '*': string } }>('/v1/models/*', async ({ params }) => {
    const id = params['*'];
    const model = (await enclaves.listModels()).find(
      (candidate) => candidate.id === id || candidate.id === PRIVATE_MODEL_PREFIX + id,
    );
    if (!model) throw new ProxyError(404, 'Private model not found', { param: 'model', code: 'model_not_found' });
    return toModelJson(model);
  });
  app.post('/v1/chat/completions', (request, reply) =>
    exchanges.serve(request, reply, OPENAI_PROTOCOL, createChatExchange),
  );
  app.post('/v1/messages', (request, reply) =>
    exchanges.serve(request, reply, ANTHROPIC_PROTOCOL, createMessageExchange),
  );
  app.post('/v1/messages/count_tokens', async (request) => ({
    input_tokens: await estimateMessageTokens(parseMessagesBody(parseJsonBody(request)), tokenCounter),
  }));
}

function registerStatusRoutes(app: FastifyInstance, enclaves: Enclaves, settings: ProxySettings): void {
  app.get('/', async (_request, reply) => reply.headers(PAGE_HEADERS).send(await renderStatusPage(enclaves, settings)));
  app.get('/health', async () => {
    const attestation = enclaves.isAttested;
    if (!attestation) void enclaves.attestAll();
    return { status: 'ok', attestation, apiKeyConfigured: true };
  });
}

function toModelJson({ id, name, created, contextLength }: PrivateModel) {
  const context = contextLength === undefined ? {} : { context_length: contextLength };
  return { id, object: 'model', created, owned_by: OWNED_BY, name, ...context, privacyLevel: 'e2e' };
}

const ROUTE_NOT_FOUND = new ProxyError(
  404,
  'Route not found; the proxy serves POST /v1/chat/completions, POST /v1/messages and GET /v1/models',
  { code: 'not_found' },
);

function selectProtocol({ url }: FastifyRequest): ClientProtocol {
  return url.startsWith('/v1/messages') ? ANTHROPIC_PROTOCOL : OPENAI_PROTOCOL;
}

/** Converts the server's errors about malformed requests, and returns all other errors unchanged. */
function translateServerError(error: unknown): unknown {
  if (error instanceof ProxyError) return error;
  const { statusCode = 500 } = error as { readonly statusCode?: number };
  return statusCode < 500 ? new ProxyError(statusCode, 'The request is malformed') : error;
}

async function listen(app: FastifyInstance, port: number): Promise<void> {
  try {
    await app.listen({ host: HOST, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') throw new StartError(`PORT ${port} is already in use.`);
    if (code === 'EACCES') throw new StartError(`PORT ${port} is not permitted for this user.`);
    throw error;
  }
}
