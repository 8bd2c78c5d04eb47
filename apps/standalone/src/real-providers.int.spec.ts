/** The program with real providers and without a payment backend: recorders take the place of the providers. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type AnyModel, type Endpoint, readCatalogue } from '#catalogue';
import {
  copyUndatedCatalogue,
  createMigratedDatabase,
  createTestEndpoint,
  createTestModel,
  openStandalone,
  ProviderRecorder,
  type RunningStandalone,
} from '#testing';

/** Only the sandbox serves it. */
const SANDBOX_MODEL = 'countinghouse/flat';
const FREE = { usdPerMillionTokens: { input: '0', output: '0' }, margin: '1' };
/** Free models, because nobody can pay in an installation without a payment backend. */
const MODELS = [
  createTestModel('test/openai', [createTestEndpoint('OpenAI', 'openai', FREE)]),
  createTestModel('test/anthropic', [createTestEndpoint('Anthropic', 'anthropic', FREE)]),
  createTestModel('test/either', [
    createTestEndpoint('OpenAI', 'openai', FREE),
    createTestEndpoint('Anthropic', 'anthropic', FREE),
  ]),
];

let directory: string;
let catalogueDir: string;
let providers: ProviderRecorder;
/** Has the port of the sandbox, so that a program that starts a sandbox does not start. */
const occupant = createServer();
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-real-'));
  catalogueDir = path.join(directory, 'catalogue');
  await copyUndatedCatalogue(catalogueDir, MODELS);
  providers = await ProviderRecorder.open();
  await once(occupant.listen(0, '127.0.0.1'), 'listening');
});
afterAll(async () => {
  occupant.close();
  providers.close();
  await rm(directory, { recursive: true });
});

/** Starts the program. `{address}` in settings is replaced by that of the recorders. */
async function start(settings: Readonly<Record<string, string>>): Promise<RunningStandalone> {
  const resolved = Object.entries(settings).map(([name, value]) => [
    name,
    value.replace('{address}', providers.address),
  ]);
  const database = await createMigratedDatabase();
  const program = await openStandalone({
    SANDBOX_PORT: String((occupant.address() as AddressInfo).port),
    DATABASE_URL: database.url,
    DATA_DIR: path.join(directory, 'data'),
    CATALOGUE_DIR: catalogueDir,
    ...Object.fromEntries(resolved),
  });
  const close = async () => {
    await program.close();
    await database.drop();
  };
  return { ...program, close };
}

// biome-ignore lint/suspicious/noExplicitAny: responses of all routes
async function readJson(response: Response): Promise<any> {
  return response.json();
}

describe.each<[string, Record<string, string>, string[]]>([
  ['OpenAI by an address alone', { OPENAI_BASE_URL: '{address}/v1' }, ['openai']],
  [
    'Anthropic by a key and an address',
    { ANTHROPIC_API_KEY: 'sk-ant-1', ANTHROPIC_BASE_URL: '{address}', OPENAI_API_KEY: ' ' },
    ['anthropic'],
  ],
  [
    'both',
    { OPENAI_API_KEY: 'sk-1', OPENAI_BASE_URL: '{address}/v1', ANTHROPIC_BASE_URL: '{address}' },
    ['openai', 'anthropic'],
  ],
])('with %s', (_, settings, slugs) => {
  let program: RunningStandalone;
  let key: string;
  let creditId: string;
  beforeAll(async () => {
    program = await start(settings);
    const account = await readJson(await fetch(`${program.api}/accounts/create`, { method: 'POST' }));
    [key, creditId] = [account.api_key, account.credit_id];
  });
  afterAll(() => program.close());

  async function send(route: string, body?: object) {
    const credential = route.startsWith('/nwc') ? { 'x-credit-id': creditId } : { authorization: `Bearer ${key}` };
    const headers = { ...credential, 'content-type': 'application/json' };
    const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers };
    const response = await fetch(program.api + route, init);
    return { status: response.status, body: await readJson(response) };
  }
  const chat = (model: string) =>
    send('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 });

  test('starts no sandbox, and says what is real', async () => {
    expect(program.sandbox).toBeUndefined();
    expect(program.welcome).toMatch(/^\n {2}Countinghouse with real services\n/);
    for (const slug of slugs) expect(program.welcome).toContain(`${slug} (${providers.address})`);
    expect(program.welcome).toContain('no payment backend is set; fund accounts with "npm run ledger"');
  });

  test('lists exactly the models that the configured providers serve', async () => {
    const isServed = ({ endpoints, id }: AnyModel) =>
      id !== SANDBOX_MODEL && (endpoints as readonly Endpoint[]).some(({ upstream }) => slugs.includes(upstream));
    const served = readCatalogue(catalogueDir).models.filter(isServed);
    const { body } = await send('/v1/models?type=all');
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual(served.map(({ id }) => id));
    expect((await send('/v1/data/endpoints')).body.data).toEqual([]);
  });

  test.each(slugs)('calls %s, with no other credential than its key', async (slug) => {
    providers.received.length = 0;
    expect(await chat(`test/${slug}`)).toMatchObject({ status: 200, body: { choices: [{}] } });
    expect(providers.received).toHaveLength(1);
    const [[, headers]] = providers.received as [ProviderRecorder['received'][number]];
    const apiKey = settings[`${slug.toUpperCase()}_API_KEY`];
    const isOpenAi = slug === 'openai';
    expect(headers.authorization).toBe(apiKey && isOpenAi ? `Bearer ${apiKey}` : undefined);
    expect(headers['x-api-key']).toBe(apiKey && !isOpenAi ? apiKey : undefined);
    expect(JSON.stringify(headers)).not.toContain('sandbox');
  });

  test('serves a model if one of its providers is configured', async () => {
    expect((await chat('test/either')).status).toBe(200);
  });

  test.each(['openai', 'anthropic', 'exa'].filter((slug) => !slugs.includes(slug)))(
    'names the missing setting of %s',
    async (slug) => {
      const setting = `${slug.toUpperCase()}_API_KEY`;
      const { status, body } =
        slug === 'exa'
          ? await send('/v1/data/api/web/search', { query: 'cats' })
          : await send(`/v1/models/test/${slug}`);
      expect(status).toBe(404);
      expect(body.error.message).toContain(`is not available here: it requires ${setting}`);
    },
  );

  test('offers no top-up, and its routes say so', async () => {
    expect((await send('/topup/payment-methods')).body.supported_methods).toEqual([]);
    for (const route of ['/topup/create/btc-lightning', '/topup/card/session']) {
      const { status, body } = await send(route, { amount: 5, currency: 'USD' });
      expect(status).toBe(404);
      expect(body.error.message).toBe(
        'This installation has no payment backend and offers no top-ups: request credit from its operator',
      );
    }
    const page = await fetch(`${program.api}/topup/card`);
    expect([page.status, await page.text()]).toEqual([404, expect.stringContaining('has no payment backend')]);
  });

  test('connects no wallet', async () => {
    const nwc_url = `nostr+walletconnect://${'ab'.repeat(32)}?relay=wss%3A%2F%2Frelay.example&secret=${'cd'.repeat(32)}`;
    const { status, body } = await send('/nwc-auto-topup/connect', { nwc_url });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining('no payment backend for Lightning')]);
  });

  test('responds to a request without a credential with 401, and offers no payment', async () => {
    const body = JSON.stringify({ model: `test/${slugs[0]}`, messages: [{ role: 'user', content: 'Hi' }] });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${program.api}/v1/chat/completions`, { method: 'POST', headers, body });
    expect([response.status, response.headers.get('www-authenticate') ?? '']).toEqual([
      401,
      expect.not.stringMatching(/Payment|L402/),
    ]);
  });
});

test('with ALLOW_SANDBOX=true payments are simulated, and other providers are not', async () => {
  const program = await start({ OPENAI_BASE_URL: '{address}/v1', ALLOW_SANDBOX: 'true', SANDBOX_PORT: '0' });
  expect(program.sandbox).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(program.welcome).toContain('simulated by the sandbox, whose money is free (ALLOW_SANDBOX=true)');
  const methods = await readJson(await fetch(`${program.api}/topup/payment-methods`));
  expect(methods.supported_methods).not.toEqual([]);
  expect((await fetch(`${program.api}/v1/models/test/anthropic`)).status).toBe(404);
  await program.close();
});
