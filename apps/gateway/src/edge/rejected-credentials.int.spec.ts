/** Providers and payment backends that reject the operator's credentials: what customers and the operator get. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Clock } from '#application';
import type { DomainEvent } from '#domain';
import { createTestEndpoint, createTestModel, LogTap, shiftClock, type TestAccount, TestWorld } from '#testing';

const KEY = 'gsk_rejected';
const MACAROON = '0201abcdef';

const offer = (provider: string, upstream: string, input: string) =>
  createTestEndpoint(provider, upstream, { usdPerMillionTokens: { input, output: '0.6' } });
const MODELS = [
  ...['test/whole', 'test/streamed'].map((id) =>
    createTestModel(id, [offer('Rejecting', 'groq', '0.01'), offer('There', 'openai', '0.15')]),
  ),
  createTestModel('test/alone', [offer('Rejecting', 'groq', '0.01')]),
];

let hasKey: boolean;
let world: TestWorld;
let account: TestAccount;
let log: LogTap;
const servers: Server[] = [];

async function listen(handler: RequestListener): Promise<string> {
  const server = createServer((request, response) => void request.resume().on('end', () => handler(request, response)));
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const provide: RequestListener = (_, response) => {
  if (!hasKey) return response.writeHead(401).end(JSON.stringify({ error: { message: `Invalid API Key: ${KEY}` } }));
  const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }];
  const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
  response.end(JSON.stringify({ id: 'x', created: 1, model: 'm', choices, usage }));
};

const rejectMacaroon: RequestListener = (_, response) =>
  response
    .writeHead(500)
    .end(JSON.stringify({ code: 2, message: 'verification failed: signature mismatch after caveat verification' }));

beforeAll(async () => {
  log = new LogTap();
  const [groq, lnd] = [await listen(provide), await listen(rejectMacaroon)];
  world = await TestWorld.openWithSagas(
    async (sandbox) => ({
      GROQ_API_KEY: KEY,
      GROQ_BASE_URL: groq,
      OPENAI_API_KEY: 'sk',
      OPENAI_BASE_URL: `${sandbox}/openai/v1`,
      LND_REST_URL: lnd,
      LND_MACAROON: MACAROON,
      CLN_REST_URL: `${sandbox}/cln`,
      CLN_RUNE: 'rune',
      LOG_LEVEL: 'error',
    }),
    MODELS,
  );
  account = await world.createAccount(1);
});
afterAll(async () => {
  await world.close();
  log.restore();
  await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))));
});
beforeEach(() => {
  hasKey = false;
});

const findRejected = async () => (await world.get('/health/ready')).body.checks.credentials.rejected as string[];

async function findAttempts() {
  const settled = (await world.listEvents()).filter(({ type }) => type === 'HoldSettled');
  return (settled.at(-1) as Extract<DomainEvent, { type: 'HoldSettled' }>).data.charge?.attempts;
}

describe('a provider that rejects its API key', () => {
  let restoreClock = () => {};
  /** Lets the rest of the provider end. */
  const endRest = () => {
    restoreClock = shiftClock(world.getService(Clock), 600_000);
  };
  afterAll(() => restoreClock());

  test.each([false, true])(
    'is replaced by the next endpoint, and then not called first (stream: %s)',
    async (stream) => {
      const model = stream ? 'test/streamed' : 'test/whole';
      const body = { model, stream, provider: { allow_fallbacks: true } };
      endRest();
      const first = await world.sendChat(account, 'tokens=4', body);
      expect([first.status, first.text]).toEqual([200, expect.stringContaining('"provider":"There"')]);
      expect(await findAttempts()).toMatchObject([
        { provider: 'rejecting', outcome: 'upstream_unavailable', status: 401 },
        { provider: 'there', outcome: 'ok' },
      ]);
      expect((await world.sendChat(account, 'tokens=4', body)).status).toBe(200);
      expect(await findAttempts()).toMatchObject([{ provider: 'there', outcome: 'ok' }]);
    },
  );

  test('without another endpoint costs nothing, and the response is 503 with Retry-After', async () => {
    const balance = await world.fetchBalance(account);
    endRest();
    const { status, headers, body, text } = await world.sendChat(account, '', { model: 'test/alone' });
    expect([status, body.error.type, headers.get('retry-after')]).toEqual([503, 'upstream_unavailable', '30']);
    expect(text).not.toMatch(/\b401\b|key/i);
    expect(await world.fetchBalance(account)).toBe(balance);
  });

  test('is named to the operator, without the key, until it accepts the key', async () => {
    await world.sendChat(account, '', { model: 'test/alone' });
    expect(await findRejected()).toContain('groq');
    expect((await world.get('/health/ready')).status).toBe(200);
    expect(log.text).toMatch(/"level":"error".*the provider groq rejects its credential \(GROQ_API_KEY\)/);
    expect(log.text).not.toContain(KEY);
    hasKey = true;
    endRest();
    expect((await world.sendChat(account, '', { model: 'test/alone' })).status).toBe(200);
    expect(await findRejected()).not.toContain('groq');
  });
});

describe('a node that rejects its macaroon', () => {
  test('is replaced by the next node of the method, which is paid', async () => {
    const paying = await world.createAccount(2);
    expect(await world.fetchBalance(paying)).not.toBe('0');
    const issued = (await world.listEvents()).filter(({ type }) => type === 'InvoiceIssued');
    expect(issued.map(({ data }) => (data as { backend: string }).backend)).toEqual(issued.map(() => 'cln'));
  });

  test('is named to the operator, without the macaroon', async () => {
    await world.createPaidAccount(1);
    expect(await findRejected()).toContain('lnd');
    expect(log.text).toMatch(/"level":"error".*the payment backend lnd rejects its credential \(LND_MACAROON\)/);
    expect(log.text).not.toContain(MACAROON);
  });

  test('is not replaced if the operator has chosen it: the response is 503 with Retry-After', async () => {
    const api = await world.addGateway({ topupBackends: { 'btc-lightning': 'lnd' } });
    const request = { amount: 1, currency: 'USD' };
    const { status, headers, body } = await world.post('/topup/create/btc-lightning', request, account, api);
    expect([status, body.error.type, headers.get('retry-after')]).toEqual([503, 'upstream_unavailable', '30']);
  });
});
