/** What each kind of external service responds to an invalid credential, and what the operator learns from it. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { FileStoreUnavailableError, generateFileId, type Hold, OperatorProblems } from '#application';
import { readPayments, readProviders } from '#catalogue';
import {
  createCoinGeckoSource,
  createPaymentBackends,
  createProviders,
  type PaymentSettings,
  S3Files,
} from '#connectors';
import type { CoinTerms } from '#domain';
import { ActionRequiredError } from '#kernel';
import { nodeRandomness } from '#runtime';
import { respondWithJson, type StubHandler, StubServer } from '../../testing/src/servers/stub-server.ts';
import { toUpstreamErrorFromResponse } from './http/json-http-client.ts';
import { toDataError } from './providers/data/error-message.ts';
import { toKeyCheckError as toDeepgramCheckError, toDeepgramError } from './providers/deepgram/errors.ts';
import { toKeyCheckError as toElevenLabsCheckError, toElevenLabsError } from './providers/elevenlabs/errors.ts';
import { toFalError } from './providers/fal/errors.ts';
import { toGoogleError } from './providers/google/errors.ts';

const SECRET = 'c0ffee';
const hold = {} as Hold;

let opened: AsyncDisposableStack;
let server: StubServer;
let url: string;
let reports: (readonly [problem: string, error: unknown])[];
let rejected: OperatorProblems;
let nowMs: number;
/** Lets the rest of a provider end, so that the next request is sent. */
const endRest = () => {
  nowMs += 600_000;
};
beforeEach(async () => {
  nowMs = 0;
  opened = new AsyncDisposableStack();
  server = new StubServer();
  opened.defer(() => server.close());
  url = await server.listen();
  reports = [];
  rejected = new OperatorProblems({
    reportError: (problem, error) => void reports.push([problem, error]),
    now: () => nowMs,
  });
});
afterEach(() => opened.disposeAsync());

const list = () => rejected.listRejected();

describe('the response of a provider', () => {
  const google = (status: string, details: unknown = []) => ({ error: { status, details } });
  test.each<[string, typeof toFalError, number, unknown, boolean]>([
    ['OpenAI', toUpstreamErrorFromResponse, 401, { error: { code: 'invalid_api_key' } }, true],
    ['OpenAI', toUpstreamErrorFromResponse, 400, { error: { code: 'invalid_value' } }, false],
    ['a router that moderates', toUpstreamErrorFromResponse, 403, { error: { message: 'flagged: my api key' } }, false],
    ['Anthropic', toUpstreamErrorFromResponse, 401, { error: { type: 'authentication_error' } }, true],
    ['fal', toFalError, 401, { detail: 'Authentication is required' }, true],
    ['fal', toFalError, 403, { detail: 'User is locked. Reason: Exhausted balance.' }, false],
    ['Google', toGoogleError, 400, google('INVALID_ARGUMENT', [{ reason: 'API_KEY_INVALID' }]), true],
    ['Google', toGoogleError, 403, google('PERMISSION_DENIED'), true],
    ['Google', toGoogleError, 400, google('FAILED_PRECONDITION'), false],
    ['Deepgram', toDeepgramError, 401, { err_code: 'INVALID_AUTH' }, true],
    ['Deepgram', toDeepgramError, 403, { err_code: 'INSUFFICIENT_PERMISSIONS' }, true],
    ['ElevenLabs', toElevenLabsError, 401, { detail: { status: 'invalid_api_key' } }, true],
    ['Deepgram to a check', toDeepgramCheckError, 401, { err_code: 'INVALID_AUTH' }, true],
    ['Deepgram to a check', toDeepgramCheckError, 403, { err_code: 'INSUFFICIENT_PERMISSIONS' }, false],
    ['ElevenLabs to a check', toElevenLabsCheckError, 401, { detail: { status: 'invalid_api_key' } }, true],
    ['ElevenLabs to a check', toElevenLabsCheckError, 401, { detail: { status: 'missing_permissions' } }, false],
    ['a data provider', toDataError, 401, { message: 'No' }, true],
    ['Serper', toDataError, 403, { message: 'Unauthorized.', statusCode: 403 }, true],
    ['Whitepages', toDataError, 403, { message: 'Forbidden' }, true],
    ['Hunter', toDataError, 403, { errors: [{ id: 'too_many_requests', details: 'Too many requests' }] }, false],
  ])('of %s shows whether the key is rejected', (_, toError, status, body, isCredentialRejected) => {
    const failure = toError(status, {}, JSON.stringify(body));
    expect(failure.isCredentialRejected).toBe(isCredentialRejected);
    if (isCredentialRejected) expect(failure).toMatchObject({ code: 'upstream_unavailable', retryAfterSeconds: 30 });
  });
});

describe('a provider', () => {
  function open() {
    const [openai] = readProviders().filter(({ slug }) => slug === 'openai');
    const settings = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
    const connection = { baseUrl: url, credential: SECRET };
    const providers = createProviders(
      openai ? [openai] : [],
      { ...settings, providers: new Map([['openai', connection]]) },
      rejected,
    );
    opened.defer(() => providers.close());
    const { signal } = new AbortController();
    const check = async () => {
      const unknown: string[] = [];
      await providers.checkKeys(signal, (_, { message }) => unknown.push(message));
      return unknown;
    };
    const speak = () => {
      endRest();
      return providers
        .get(
          hold,
          'openai',
          'speech',
        )({ model: 'm', input: 'x', voice: 'v', parameters: {}, signal } as never)
        .catch((error: unknown) => error);
    };
    return { speak, check, connection };
  }

  test('is listed from a rejection to the next response, not to another failure, and reported without its key', async () => {
    const { speak } = open();
    server.handler = respondWithJson({ error: { message: SECRET } }, 401);
    await speak();
    expect(list()).toEqual(['openai']);
    expect(reports).toEqual([
      ['the provider openai rejects its credential (OPENAI_API_KEY)', expect.any(ActionRequiredError)],
    ]);
    expect(String(reports)).not.toContain(SECRET);
    server.handler = respondWithJson({}, 500);
    await speak();
    expect(list()).toEqual(['openai']);
    server.handler = respondWithJson({}, 200);
    await speak();
    expect(list()).toEqual([]);
  });

  test('is reported once for all rejections until it accepts a request', async () => {
    const { speak } = open();
    const reject = respondWithJson({}, 401);
    for (const handler of [reject, reject, respondWithJson({}, 500), reject]) {
      server.handler = handler;
      await speak();
    }
    expect(reports).toHaveLength(1);
    server.handler = respondWithJson({}, 200);
    await speak();
    server.handler = reject;
    await Promise.all([speak(), speak()]);
    expect(reports).toHaveLength(2);
  });

  test.each<[string, number, readonly string[], readonly string[]]>([
    ['accepts', 200, [], []],
    ['rejects', 401, ['openai'], []],
    ['limits', 403, [], ['The provider responded with status 403']],
    ['does not know the check of', 404, [], ['The provider responded with status 404']],
    ['fails with', 500, [], ['The provider responded with status 500']],
  ])('that %s a key (%i) is listed only if it rejects the key, and called once per key', async (...expected) => {
    const [, status, rejections, unknown] = expected;
    const { check } = open();
    server.handler = respondWithJson({}, status);
    expect([await check(), list()]).toEqual([unknown, rejections]);
    expect(await check()).toEqual([]);
    expect(server.requests.map(({ line, headers }) => [line, headers.authorization])).toEqual([
      ['GET /models', `Bearer ${SECRET}`],
    ]);
  });

  test('is no longer listed after its key was replaced, although a request with the previous key is still rejected', async () => {
    const { speak, check, connection } = open();
    server.handler = respondWithJson({}, 401);
    await speak();
    const [received, respond] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    server.handler = (response, request) => {
      if (request.method === 'GET') return response.end('{}');
      received.resolve();
      void respond.promise.then(() => response.writeHead(401).end('{}'));
    };
    const late = speak();
    await received.promise;

    connection.credential = 'another';
    await check();
    expect(list()).toEqual([]);
    respond.resolve();
    await late;

    expect(list()).toEqual([]);
    expect(reports).toHaveLength(1);
  });
});

describe.each<[string, string, object, StubHandler]>([
  ['lnd', 'LND_MACAROON', { lndMacaroon: SECRET }, respondWithJson({ code: 2, message: 'permission denied' }, 500)],
  ['cln', 'CLN_RUNE', { clnRune: SECRET }, respondWithJson({ code: 1501 }, 403)],
  ['phoenixd', 'PHOENIXD_PASSWORD', { phoenixdPassword: SECRET }, respondWithJson('Invalid authentication', 401)],
  ['btcpay', 'BTCPAY_API_KEY', { btcpayApiKey: SECRET, btcpayStoreId: 's' }, respondWithJson({}, 403)],
  ['monero', 'MONERO_WALLET_RPC_LOGIN', { moneroLogin: `u:${SECRET}` }, respondWithJson('', 401)],
  ['stripe', 'STRIPE_SECRET_KEY', { stripeKey: `sk_${SECRET}` }, respondWithJson({ error: {} }, 401)],
])('the payment backend %s', (name, setting, credential, rejects) => {
  test('is listed and reported if it rejects its credential', async () => {
    server.handler = rejects;
    const settings = { [`${name}Url`]: url, topupBackends: {}, ...credential };
    const { backends, close } = bind(
      createPaymentBackends(settings as unknown as PaymentSettings, readPayments(), rejected),
    );
    opened.defer(close);
    const [backend] = backends;
    const coin = readPayments().coins.find(({ code }) => code === 'BTC') as CoinTerms;
    const request = { topupId: 't', coin, kind: 'bolt11' as const, units: 1_000n, memo: 'm', expirySeconds: 900 };
    const payment = backend?.createPayment({ ...request, confirmations: 0, returnUrl: 'https://shop.example' });
    await expect(payment).rejects.toMatchObject({ code: 'upstream_unavailable', isCredentialRejected: true });
    expect(list()).toEqual([name]);
    expect(reports).toEqual([
      [`the payment backend ${name} rejects its credential (${setting})`, expect.any(ActionRequiredError)],
    ]);
    expect(String(reports)).not.toContain(SECRET);
  });
});

/** Returns the payment backends and the function that closes them. */
function bind(registry: ReturnType<typeof createPaymentBackends>) {
  return { backends: registry.backends, close: () => registry.close() };
}

test('a source of exchange rates is listed while it rejects its API key', async () => {
  const dispatcher = new Agent();
  opened.defer(() => dispatcher.close());
  const source = createCoinGeckoSource(
    url,
    () => SECRET,
    rejected.createMonitor('coingecko', 'coingecko', 'COINGECKO_API_KEY'),
  );
  const fetchPrice = () =>
    source.fetchPrice({ coingecko: 'bitcoin' }, { now: Date.now(), timeoutMs: 10_000, dispatcher });
  server.handler = respondWithJson({ status: { error_code: 10_002 } }, 401);
  await expect(fetchPrice()).rejects.toThrow('status 401');
  expect(list()).toEqual(['coingecko']);
  server.handler = respondWithJson({ bitcoin: { usd: 100_000, last_updated_at: Math.floor(Date.now() / 1_000) } });
  await fetchPrice();
  expect(list()).toEqual([]);
});

test('a bucket is listed while it rejects its credentials', async () => {
  server.handler = (response) => void response.writeHead(200).end();
  const monitor = rejected.createMonitor('s3', 'the bucket', 'S3_ACCESS_KEY_ID');
  const credentials = { accessKeyId: 'id', secretAccessKey: SECRET };
  const store = await S3Files.open({ bucket: 'b', endpoint: url, region: 'us-east-1', credentials, monitor });
  opened.defer(() => store.close());
  const file = { id: generateFileId(nodeRandomness, 'gen', 0), n: 0 };
  server.handler = (response) => void response.writeHead(403).end();
  await expect(store.find(file)).rejects.toThrow(FileStoreUnavailableError);
  expect(list()).toEqual(['s3']);
  server.handler = (response) => void response.writeHead(404).end();
  expect(await store.find(file)).toBeUndefined();
  expect(list()).toEqual(['s3']);
  server.handler = (response) => void response.writeHead(200, { 'content-length': '0' }).end();
  expect(await store.find(file)).toBeDefined();
  expect(list()).toEqual([]);
});
