/** The proxy as a server of this machine: two faces for programs, and a page for people. */
import type { AddressInfo } from 'node:net';
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify';
import { ConnectionGuard, type Log, SERVER_TIMEOUTS, StartError } from '#foundation/program';
import type { AttestationVerifier } from './attestation/attestation-verifier.ts';
import { MAX_BODY_BYTES, registerBodyParser } from './bodies.ts';
import { getCallerRejection } from './callers.ts';
import { Enclaves } from './enclaves.ts';
import { Exchanges, parseJsonBody } from './exchanges.ts';
import { GatewayClient, PREFIX, type PrivateModel } from './gateway.ts';
import { ModelNames } from './model-names.ts';
import { PrivateChats } from './private-chats.ts';
import { ANTHROPIC_PROTOCOL, estimateMessageTokens, messageExchange, messagesBody } from './protocols/anthropic.ts';
import type { ClientProtocol } from './protocols/client-protocol.ts';
import { chatExchange, OPENAI_PROTOCOL } from './protocols/openai.ts';
import { ProxyError } from './proxy-error.ts';
import { type RequestLogFields, sendProxyError } from './send-response.ts';
import type { ProxySettings } from './settings.ts';
import { PAGE_HEADERS, statusPage } from './status-page.ts';

/** No setting: whoever reaches the proxy spends. */
const HOST = '127.0.0.1';
const MAX_CONNECTIONS = 1_000;
/** What has not come by then is not waited for. */
const REQUEST_MS = 120_000;
/** Running answers have so long to end when the proxy stops. */
const DRAIN_MS = 30_000;
const OWNED_BY = 'ppq-private';

declare module 'fastify' {
  interface FastifyRequest {
    note: RequestLogFields;
  }
}

export interface RunningProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** @throws StartError when it cannot listen */
export async function startProxy(
  settings: ProxySettings,
  verifier: AttestationVerifier,
  log: Log,
): Promise<RunningProxy> {
  const gateway = new GatewayClient(settings.gateway, settings.apiKey);
  const enclaves = new Enclaves(gateway, verifier, log);
  const exchanges = new Exchanges(new ModelNames(enclaves, settings.defaultModel), new PrivateChats(gateway, enclaves));
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    requestTimeout: REQUEST_MS,
    http: SERVER_TIMEOUTS,
  });
  const connections = new ConnectionGuard({ max: MAX_CONNECTIONS, alarm: (problem) => log.warn(problem) });
  connections.guard(app.server);
  guard(app, log);
  serveModels(app, enclaves, exchanges);
  serveStatus(app, enclaves, settings);
  await listen(app, settings.port);
  if (settings.allowUnattested) log.warn('ALLOW_UNATTESTED=1: simulated enclaves are accepted, and prove nothing');
  void enclaves.look();
  return {
    url: `http://${HOST}:${(app.server.address() as AddressInfo).port}`,
    async close() {
      const closed = app.close();
      await exchanges.drained(DRAIN_MS);
      // Those on which nothing was ever asked would be waited for.
      app.server.closeAllConnections();
      await closed;
      connections.close();
      await gateway.close();
    },
  };
}

/** Everything that is decided before a body is read, how failures are told, and what is logged. */
function guard(app: FastifyInstance, log: Log): void {
  registerBodyParser(app);
  app.decorateRequest('note', undefined as unknown as RequestLogFields);
  app.addHook('onRequest', async (request, reply) => {
    request.note = { face: faceOf(request).name, answered: 0 };
    const { port } = app.server.address() as AddressInfo;
    const refusal = getCallerRejection(request, port) ?? (request.is404 ? NO_ROUTE : undefined);
    if (!refusal) return;
    // What it has not sent yet is not read.
    reply.header('connection', 'close');
    throw refusal;
  });
  app.setErrorHandler((error, request, reply) => sendProxyError(reply, faceOf(request), request.note, ownWords(error)));
  app.setNotFoundHandler(() => {
    throw NO_ROUTE;
  });
  app.addHook('onResponse', async ({ note, method, routeOptions }, reply) => {
    const { statusCode: status, elapsedTime } = reply;
    const line = { ...note, method, route: routeOptions.url, status, ms: Math.round(elapsedTime) };
    if (note.failed) log.warn(line, 'failed');
    else log.debug(line, 'answered');
  });
}

function serveModels(app: FastifyInstance, enclaves: Enclaves, exchanges: Exchanges): void {
  app.get('/v1/models', async () => {
    const models = await enclaves.models();
    return { object: 'list', data: models.map(listed) };
  });
  app.get<{ Params: { '*': string } }>('/v1/models/*', async ({ params }) => {
    const id = params['*'];
    const model = (await enclaves.models()).find((each) => each.id === id || each.id === PREFIX + id);
    if (!model)
      throw new ProxyError(404, 'There is no such private model', { param: 'model', code: 'model_not_found' });
    return listed(model);
  });
  app.post('/v1/chat/completions', (request, reply) => exchanges.serve(request, reply, OPENAI_PROTOCOL, chatExchange));
  app.post('/v1/messages', (request, reply) => exchanges.serve(request, reply, ANTHROPIC_PROTOCOL, messageExchange));
  app.post('/v1/messages/count_tokens', async (request) => ({
    input_tokens: await estimateMessageTokens(messagesBody(parseJsonBody(request))),
  }));
}

function serveStatus(app: FastifyInstance, enclaves: Enclaves, settings: ProxySettings): void {
  app.get('/', async (_request, reply) => reply.headers(PAGE_HEADERS).send(await statusPage(enclaves, settings)));
  app.get('/health', async () => {
    const attestation = enclaves.proven;
    if (!attestation) void enclaves.look();
    return { status: 'ok', attestation, apiKeyConfigured: true };
  });
}

function listed({ id, name, created, contextLength }: PrivateModel) {
  const context = contextLength === undefined ? {} : { context_length: contextLength };
  return { id, object: 'model', created, owned_by: OWNED_BY, name, ...context, privacyLevel: 'e2e' };
}

const NO_ROUTE = new ProxyError(
  404,
  'There is nothing at this address: the proxy serves POST /v1/chat/completions, POST /v1/messages and GET /v1/models',
  { code: 'not_found' },
);

function faceOf({ url }: FastifyRequest): ClientProtocol {
  return url.startsWith('/v1/messages') ? ANTHROPIC_PROTOCOL : OPENAI_PROTOCOL;
}

/** What the server says of a request that it could not read; everything else is for the face. */
function ownWords(error: unknown): unknown {
  if (error instanceof ProxyError) return error;
  const { statusCode = 500 } = error as { readonly statusCode?: number };
  return statusCode < 500 ? new ProxyError(statusCode, 'The request cannot be read') : error;
}

async function listen(app: FastifyInstance, port: number): Promise<void> {
  try {
    await app.listen({ host: HOST, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') throw new StartError(`PORT ${port} is in use already.`);
    if (code === 'EACCES') throw new StartError(`PORT ${port} may not be used by this user.`);
    throw error;
  }
}
