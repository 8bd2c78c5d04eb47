import { randomUUID } from 'node:crypto';
import type { Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import pg from 'pg';
import {
  Accounts,
  CallLimits,
  Catalogues,
  ChatUpstreams,
  Clock,
  Conversations,
  EmbeddingUpstreams,
  ExchangeRates,
  Holds,
  LightningNode,
  openStreams,
  PaidCalls,
  Pulses,
  RunningTasks,
  Secrets,
  SystemClock,
  Topups,
  WebSearch,
} from '#application';
import { type Catalogue, readCatalogue, shippedCatalogue } from '#catalogue';
import {
  AnthropicChat,
  coinbase,
  DIALECTS,
  type Dialect,
  ExaSearch,
  kraken,
  LndNode,
  MarketRates,
  NamedChatUpstreams,
  NamedEmbeddingUpstreams,
  OpenAiChat,
  OpenAiEmbeddings,
  storedResponseMigrations,
} from '#connectors';
import { PostgresSnapshots } from '#eventstore';
import {
  type Foundation,
  type Log,
  migrate,
  openTogether,
  type Running,
  readMasterKey,
  type Settings,
  StartError,
} from '#infra';
import { CatalogueWatch } from './catalogue-watch.ts';
import { Authenticator } from './edge/authenticator.ts';
import { BooksReader } from './edge/books-reader.ts';
import { answerTo, ErrorFilter, InvalidRequest, sendError, UNEXPECTED } from './edge/errors.ts';
import { Idempotency, leaseOf } from './edge/idempotency.ts';
import { answerMigrations, KeptAnswers } from './edge/kept-answers.ts';
import { ProjectorLag } from './edge/lag.ts';
import { MedianCosts } from './edge/median-costs.ts';
import { watchMethods } from './edge/methods.ts';
import { PublicAddress } from './edge/public-address.ts';
import { recordSent } from './edge/recording.ts';
import { WatchedHolds } from './edge/watched-holds.ts';
import { GatewayModule } from './gateway.module.ts';
import { HealthController, ReadinessOptions } from './health/health.controller.ts';
import { openConversations } from './stored-responses.ts';

/** Images and files come inside the JSON. */
const MAX_BODY_BYTES = 25 * 1024 * 1024;
const READ_CONNECTIONS = 10;
/** Anthropic wants a limit always; without one the answer may be as long as the smallest of its models makes it. */
const ANTHROPIC_MAX_TOKENS = 64_000;
/** A search takes a second or two; an answer waits for it. */
const SEARCH_TIMEOUT_MS = 15_000;
/** How long clients may keep a connection open once all is answered. */
const LINGER_MS = 1_000;

const CORS = {
  origin: '*',
  allowedHeaders:
    '*, authorization, api-key, x-api-key, x-credit-id, x-query-source, x-private-model, ehbp-encapsulated-key, content-type, idempotency-key',
  exposedHeaders:
    'x-request-id, x-generation-id, ehbp-response-nonce, www-authenticate, payment-receipt, retry-after, idempotent-replayed',
  methods: 'GET, POST, PATCH, DELETE, OPTIONS',
  maxAge: 86_400,
  // After `onRequest`, so that the answer to a preflight carries its request's id as well.
  hook: 'preParsing' as const,
};

/** Starts the HTTP gateway on a foundation. */
export function startGateway(foundation: Foundation): Promise<Running & { readonly where: { readonly api: string } }> {
  return openTogether((opened) => openGateway(foundation, opened));
}

async function openGateway(foundation: Foundation, opened: AsyncDisposableStack) {
  const { settings, log, databaseUrl, store, runtime } = foundation;
  const clock = new SystemClock();
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: READ_CONNECTIONS,
    application_name: 'countinghouse-gateway',
  });
  pool.on('error', (err) => log.warn({ err }, 'an idle database connection broke'));
  opened.defer(() => pool.end());
  const secrets = new Secrets(await readMasterKey(settings));
  const lag = new ProjectorLag();
  const books = new BooksReader(pool, store);
  const streams = openStreams(lag.watching(store), new PostgresSnapshots(pool), runtime);
  const directory = settings.catalogueDir ?? shippedCatalogue();
  const catalogues = await Catalogues.with(catalogueFrom(directory), streams.priceLists, clock);
  const watch = new CatalogueWatch(directory, catalogues, log);
  opened.defer(() => watch.close());
  const running = new RunningTasks();
  const pulses = new Pulses(clock);
  const address = new PublicAddress();
  await migrate(databaseUrl, [...storedResponseMigrations, ...answerMigrations]);
  const conversations = await openConversations(foundation, { pool, secrets, clock }, opened);
  const holds = new WatchedHolds(streams.accounts, clock);
  const authenticator = new Authenticator(books, secrets, clock);
  const kept = new KeptAnswers(pool, secrets, leaseOf(settings));
  const { accounts } = streams;
  const { alarm } = runtime;
  const idempotency = new Idempotency({ kept, books, accounts, holds, authenticator, secrets, clock, alarm });
  opened.defer(() => idempotency.close());
  const app = await createApp(log, [
    ...openWorld(foundation, clock, opened),
    { provide: Clock, useValue: clock },
    { provide: Secrets, useValue: secrets },
    { provide: Catalogues, useValue: catalogues },
    { provide: Pulses, useValue: pulses },
    { provide: Conversations, useValue: conversations },
    { provide: Accounts, useValue: streams.accounts },
    { provide: Topups, useValue: streams.topups },
    { provide: Holds, useValue: holds },
    { provide: PaidCalls, useValue: new PaidCalls(holds, pulses) },
    { provide: RunningTasks, useValue: running },
    { provide: CallLimits, useValue: settings },
    { provide: Authenticator, useValue: authenticator },
    { provide: Idempotency, useValue: idempotency },
    { provide: BooksReader, useValue: books },
    { provide: MedianCosts, useValue: new MedianCosts(books) },
    { provide: ProjectorLag, useValue: lag },
    { provide: PublicAddress, useValue: address },
    { provide: ReadinessOptions, useValue: { store, maxLagMs: settings.maxLagMs } },
  ]);
  opened.defer(async () => {
    app.get(HealthController).draining = true;
    const closed = app.close();
    await running.drain(settings.shutdownTimeoutMs);
    const leave = setTimeout(() => app.getHttpServer().closeAllConnections(), LINGER_MS);
    await closed;
    clearTimeout(leave);
  });
  const api = await listen(app, settings);
  address.url = settings.publicBaseUrl ?? api;
  return { where: { api } };
}

/** What the use cases reach the world through, by their configured addresses. */
function openWorld({ settings, runtime }: Foundation, clock: Clock, opened: AsyncDisposableStack): Provider[] {
  const { connectTimeoutMs, idleTimeoutMs } = settings;
  const openAi = (baseUrl: string, apiKey: string, dialect: Dialect) =>
    new OpenAiChat({ baseUrl, apiKey, connectTimeoutMs, idleTimeoutMs }, dialect);
  const upstreams = new NamedChatUpstreams({
    openai: openAi(settings.openaiBaseUrl, settings.openaiApiKey, DIALECTS.openai),
    anthropic: new AnthropicChat({
      baseUrl: settings.anthropicBaseUrl,
      apiKey: settings.anthropicApiKey,
      connectTimeoutMs,
      idleTimeoutMs,
      defaultMaxTokens: ANTHROPIC_MAX_TOKENS,
    }),
    openrouter: openAi(settings.openrouterBaseUrl, settings.openrouterApiKey, DIALECTS.openrouter),
    groq: openAi(settings.groqBaseUrl, settings.groqApiKey, DIALECTS.groq),
    deepinfra: openAi(settings.deepinfraBaseUrl, settings.deepinfraApiKey, DIALECTS.deepinfra),
  });
  const vectors = (baseUrl: string, apiKey: string) =>
    new OpenAiEmbeddings({ baseUrl, apiKey, connectTimeoutMs, idleTimeoutMs });
  const embeddings = new NamedEmbeddingUpstreams({
    openai: vectors(settings.openaiBaseUrl, settings.openaiApiKey),
    openrouter: vectors(settings.openrouterBaseUrl, settings.openrouterApiKey),
    deepinfra: vectors(settings.deepinfraBaseUrl, settings.deepinfraApiKey),
  });
  const web = new ExaSearch({
    baseUrl: settings.exaBaseUrl,
    apiKey: settings.exaApiKey,
    connectTimeoutMs,
    timeoutMs: SEARCH_TIMEOUT_MS,
  });
  const { lndUrl: url, lndMacaroon: macaroon, lndCertificate: certificate } = settings;
  const node = new LndNode({ url, macaroon, certificate });
  const rates = new MarketRates([kraken(settings.krakenUrl), coinbase(settings.coinbaseUrl)], clock, runtime.alarm);
  for (const each of [upstreams, embeddings, node, rates, web]) opened.defer(() => each.close());
  return [
    { provide: ChatUpstreams, useValue: upstreams },
    { provide: EmbeddingUpstreams, useValue: embeddings },
    { provide: WebSearch, useValue: web },
    { provide: LightningNode, useValue: node },
    { provide: ExchangeRates, useValue: rates },
  ];
}

/** @throws StartError that names the file, the model and the field */
function catalogueFrom(directory: string): Catalogue {
  try {
    return readCatalogue(directory);
  } catch (error) {
    throw new StartError(`The catalogue ${(error as Error).message}.`);
  }
}

async function createApp(log: Log, providers: Provider[]): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({
    bodyLimit: MAX_BODY_BYTES,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      reply.header('x-request-id', request.id);
      sendError(reply, answerTo(error) ?? UNEXPECTED);
    },
  });
  const app = await NestFactory.create<NestFastifyApplication>(
    GatewayModule.with(providers, new ErrorFilter(log)),
    adapter,
    { logger: false, bodyParser: false, abortOnError: false },
  );
  const fastify = adapter.getInstance() as unknown as FastifyInstance;
  prepare(fastify);
  const refuseOtherMethods = watchMethods(fastify);
  app.enableCors(CORS);
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
    if (body === '') done(null, undefined);
    else void parseJson(request, body as string, done);
  });
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done(request.url.includes('%00') ? new InvalidRequest('The address has a NUL in it') : undefined);
  });
  fastify.addHook('onSend', recordSent);
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
