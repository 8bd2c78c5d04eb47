/**
 * Automatic top-up end to end: gateway, sagas, a relay, and wallets with different behaviours. The wallets of `cases`
 * are connected at the same time, in one world.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import {
  createTestEndpoint,
  createTestModel,
  extendDelay,
  sampleSize,
  type TestAccount,
  type TestWallet,
  TestWorld,
} from '#testing';

/** Ten tokens of this model cost 0.1055 USD. */
const DEAR = 'test/dear';
const PRICE = 0.1055;
const MODELS = [
  createTestModel(DEAR, [
    createTestEndpoint('openai', 'openai', { usdPerMillionTokens: { input: '0', cacheRead: '0', output: '10000' } }),
  ]),
];
/** 10 USD and the Lightning bonus. */
const ONE_TOPUP = '10.5';
/** What concurrent requests leave, below the threshold. */
const REST_USD = 4.2;

let world: TestWorld;
let database: pg.Pool;
beforeAll(async () => {
  world = await TestWorld.openWithSagas({}, MODELS);
  database = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
});
afterAll(async () => {
  await database.end();
  await world.close();
});

const state = async (account: TestAccount) => (await world.getAutoTopup(account)).body;
const attempts = async (account: TestAccount) =>
  (await world.listEvents())
    .filter(({ stream }) => stream === `autotopup-${world.getAccountId(account)}`)
    .filter(({ type }) => type === 'AutoTopupBegun').length;

describe('automatic top-up', () => {
  interface Case {
    readonly account: TestAccount;
    readonly wallet: TestWallet;
  }
  const cases = new Map<string, Case>();
  const PAYING: readonly [string, object][] = [
    ['pays at once', { mode: 'pays' }],
    ['supports only the old encryption', { encryption: 'nip04' }],
    ['pays late', { mode: 'pays late', delay_ms: 1_000 }],
    ['fails, then pays', { mode: 'fails, then pays' }],
    ['pays, and never responds', { mode: 'pays silently' }],
    ['responds twice', { mode: 'answers twice' }],
    ['is impersonated by forged responses', { mode: 'forged' }],
    ['never receives the first request', { mode: 'drops' }],
    ['loses the connection before it responds', { mode: 'drops its answer' }],
  ];
  beforeAll(async () => {
    const others: [string, object][] = [
      ['quota', { mode: 'quota' }],
      ['silent', { mode: 'never answers' }],
      ['careless', { mode: 'tells secrets' }],
    ];
    const all = [...PAYING, ...others].map(async ([name, options]) => {
      const [account, wallet] = [await world.createAccount(), await world.createNwcWallet(options)];
      cases.set(name, { account, wallet });
      expect((await world.connectWallet(account, wallet)).status).toBe(200);
    });
    await Promise.all(all);
  });
  const caseOf = (name: string) => cases.get(name) as Case;

  test.each(PAYING)('funds the account with one payment from a wallet that %s', async (name) => {
    const { account, wallet } = caseOf(name);
    await world.waitUntil(async () => (await state(account)).last_topup_at !== null);
    await world.waitUntil(async () => (await world.fetchBalance(account)) === ONE_TOPUP);
    expect((await world.getWalletUsage(wallet)).payments).toHaveLength(1);
    expect(await state(account)).toMatchObject({
      state: 'idle',
      last_error: null,
      paused_until: null,
      last_attempt: { state: 'paid', amount_usd: 10 },
    });
    expect(await attempts(account)).toBe(1);
  });

  test('pauses when the budget of the wallet is used up, and continues with another wallet', async () => {
    const { account, wallet } = caseOf('quota');
    await world.waitUntil(async () => (await state(account)).state === 'paused');
    expect(await state(account)).toMatchObject({
      last_error_code: 'QUOTA_EXCEEDED',
      last_error: 'The budget of this connection is used up',
      last_topup_at: null,
      paused_until: expect.any(String),
    });
    const other = await world.createNwcWallet();
    await world.connectWallet(account, other);
    await world.waitUntil(async () => (await state(account)).last_topup_at !== null);
    await world.waitUntil(async () => (await world.fetchBalance(account)) === ONE_TOPUP);
    expect(await attempts(account)).toBe(1); // the same invoice
    expect((await world.getWalletUsage(wallet)).payments).toEqual([]);
  });

  test('does not send an invoice to another wallet after it was sent to an unresponsive one', async () => {
    const { account } = caseOf('silent');
    const other = await world.createNwcWallet();
    await world.connectWallet(account, other);
    await looked(account);
    expect(await state(account)).toMatchObject({ state: 'topping_up', last_attempt: { state: 'asked' } });
    expect([await world.getWalletUsage(other), await attempts(account)]).toEqual([
      expect.objectContaining({ requests: 0 }),
      1,
    ]);
  });

  test('neither quotes nor stores secrets that a wallet reports in its error', async () => {
    const { account } = caseOf('careless');
    await world.waitUntil(async () => (await state(account)).last_error !== null);
    expect((await state(account)).last_error).toMatch(/^no route for … with key …$/);
    const secrets = [...cases.values()].map(({ wallet }) => new URL(wallet.nwc_url).searchParams.get('secret') ?? '');
    const uses = await Promise.all([...cases.values()].map(({ wallet }) => world.getWalletUsage(wallet)));
    const preimages = uses.flatMap(({ payments }) => payments.map(({ preimage }) => preimage));
    expect([secrets.length, preimages.length]).toEqual([cases.size, expect.any(Number)]);
    expect(preimages.length).toBeGreaterThanOrEqual(PAYING.length);
    const kept = (await everything()).toLowerCase();
    expect(kept).toContain(caseOf('careless').wallet.id); // the search finds text that is stored
    for (const secret of [...secrets, ...preimages]) {
      for (const written of [
        secret,
        ...['base64', 'base64url'].map((as) => Buffer.from(secret, 'hex').toString(as as 'base64')),
      ])
        expect(kept.includes(written.toLowerCase().replace(/=+$/, ''))).toBe(false);
    }
  });
});

/** All rows of all tables, as text. */
async function everything(): Promise<string> {
  const { rows } = await database.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  expect(rows.length).toBeGreaterThan(10);
  const tables: string[] = [];
  for (const { name } of rows) {
    const found = await database.query<{ row: string }>(`select to_jsonb(t)::text as row from ${name} t`);
    tables.push(
      ...found.rows.map(({ row }) =>
        row.replaceAll(/\\\\x([0-9a-f]+)/g, (_, hex) => Buffer.from(hex, 'hex').toString()),
      ),
    );
  }
  return tables.join('\n');
}

/** Waits until the next run of the account's workflow is due more than 1.5 seconds after this call. */
async function looked(account: TestAccount): Promise<void> {
  const { rows } = await database.query<{ now: Date }>('select now()');
  const due = () =>
    database.query<{ at: Date }>(`select at from es.due where workflow = 'autotopups' and id = $1`, [
      world.getAccountId(account),
    ]);
  await world.waitUntil(async () => ((await due()).rows[0]?.at.getTime() ?? 0) > (rows[0]?.now.getTime() ?? 0) + 1_500);
}

const dear = (account: TestAccount, latency = 0) =>
  world.sendChat(account, `tokens=10 latency=${latency}`, { model: DEAR, max_tokens: 10 });

async function funded(usd: number): Promise<{ account: TestAccount; wallet: TestWallet }> {
  const [account, wallet] = [await world.createAccount(usd), await world.createNwcWallet()];
  await world.connectWallet(account, wallet, { threshold_usd: 5 });
  return { account, wallet };
}

test('starts one automatic top-up when concurrent charges cross the threshold', async () => {
  const count = sampleSize(60, 20);
  const { account, wallet } = await funded(REST_USD + count * PRICE);
  await Promise.all(Array.from({ length: count }, () => dear(account)));
  await world.waitUntil(async () => (await state(account)).last_topup_at !== null);
  await looked(account);
  expect([await attempts(account), (await world.getWalletUsage(wallet)).payments.length]).toEqual([1, 1]);
  await world.waitUntil(async () => Number(await world.fetchBalance(account)) > 10.5);
  expect(Number(await world.fetchBalance(account))).toBeCloseTo(REST_USD + 10.5, 9);
});

test('starts no automatic top-up for holds, but one for the charges that follow', async () => {
  const count = sampleSize(64, 20);
  const { account } = await funded(REST_USD + count * PRICE);
  const generation = extendDelay(1_500);
  const waiting = Array.from({ length: count }, () => dear(account, 1_500));
  await world.waitUntil(async () => {
    const { body } = await world.post('/credits/balance', undefined, account);
    return body.held_usd > (count - 0.5) * PRICE;
  });
  await world.sendChat(account, 'tokens=1'); // a charge triggers the workflow
  await looked(account);
  expect(await attempts(account)).toBe(0);
  generation.end();
  await Promise.all(waiting);
  await world.waitUntil(async () => (await state(account)).last_topup_at !== null);
  expect(await attempts(account)).toBe(1);
});

describe('/nwc-auto-topup', () => {
  test('returns connected: false, and null as data, if no wallet was ever connected', async () => {
    const account = await world.createAccount();
    expect(await state(account)).toMatchObject({ status: 'success', connected: false, nwc_url: null, data: null });
  });

  test('accepts the credit id, alone or with a key of the account, and shows the URL without its secret', async () => {
    const [account, wallet] = [await world.createAccount(10.5), await world.createNwcWallet()];
    const ways: Readonly<Record<string, string>>[] = [
      { 'x-credit-id': account.creditId },
      { 'api-key': account.apiKey, 'x-credit-id': account.creditId },
      { authorization: `Bearer ${account.apiKey}`, 'x-credit-id': account.creditId },
    ];
    for (const headers of ways) {
      const body = { nwc_url: wallet.nwc_url };
      const connected = await world.send('POST', '/nwc-auto-topup/connect', { headers, body });
      expect([connected.status, connected.body.connected]).toEqual([200, true]);
      const shown = await world.send('GET', '/nwc-auto-topup', { headers });
      expect(shown.body.nwc_url).toMatch(
        new RegExp(`^nostr\\+walletconnect://${wallet.id}\\?relay=.*&secret=\\*\\*\\*$`),
      );
      expect(shown.body.data).toMatchObject({ threshold_usd: 10, topup_amount_usd: 10, nwc_url: shown.body.nwc_url });
      const gone = await world.send('DELETE', '/nwc-auto-topup/connection', { headers });
      expect([gone.status, gone.body.status]).toEqual([200, 'success']);
      const after = (await world.send('GET', '/nwc-auto-topup', { headers })).body;
      expect(after).toMatchObject({ connected: false, enabled: false, nwc_url: null, data: null });
    }
  });

  const requests = (nwcUrl: string) =>
    [
      ['GET', '/nwc-auto-topup', {}],
      ['POST', '/nwc-auto-topup/connect', { body: { nwc_url: nwcUrl, threshold_usd: 1_000 } }],
      ['DELETE', '/nwc-auto-topup/connection', {}],
    ] as const;

  test('a key with a limit neither reads, replaces, changes nor disconnects the wallet of its account', async () => {
    const [account, wallet, other] = [
      await world.createAccount(10.5),
      await world.createNwcWallet(),
      await world.createNwcWallet(),
    ];
    const headers = { 'x-credit-id': account.creditId };
    const limited = { name: 'guest', usage_limit_usd: 0.01 };
    const guest = (await world.send('POST', '/keys', { headers, body: limited })).body.data.api_key as string;
    await world.connectWallet(account, wallet, { threshold_usd: 5 });
    const before = await state(account);
    expect(before).toMatchObject({ connected: true, threshold_usd: 5 });
    const credentials: Readonly<Record<string, string>>[] = [
      { authorization: `Bearer ${guest}` },
      { 'x-api-key': guest },
      { 'api-key': guest },
      { authorization: `Bearer ${guest}`, 'x-credit-id': '' },
    ];
    for (const credential of credentials)
      for (const url of [wallet.nwc_url, other.nwc_url])
        for (const [method, route, sent] of requests(url)) {
          const answer = await world.send(method, route, { headers: credential, ...sent });
          expect([route, answer.status, answer.body.message]).toEqual([
            route,
            401,
            'Missing credential: send the credit id of the account as x-credit-id',
          ]);
        }
    expect(await state(account)).toEqual(before);
  });

  test('rejects the credit id together with a key of another account', async () => {
    const [account, other, wallet] = [
      await world.createAccount(),
      await world.createAccount(),
      await world.createNwcWallet(),
    ];
    const headers = { authorization: `Bearer ${other.apiKey}`, 'x-credit-id': account.creditId };
    for (const [method, route, sent] of requests(wallet.nwc_url))
      expect([route, (await world.send(method, route, { headers, ...sent })).status]).toEqual([route, 400]);
    expect(await state(account)).toMatchObject({ connected: false, updated_at: null });
  });

  test.each<[string, object, string]>([
    ['a threshold below 5', { threshold_usd: 4.99 }, 'threshold_usd must be at least 5'],
    ['an amount below the Lightning limit', { topup_amount_usd: 0.09 }, 'topup_amount_usd must be from 0.1 to 1000'],
    ['an amount over the Lightning limit', { topup_amount_usd: 1_000.01 }, 'topup_amount_usd must be from 0.1 to 1000'],
    ['an amount that is not a number', { topup_amount_usd: 'ten' }, 'topup_amount_usd must be a number above 0'],
    ['a missing URL', { nwc_url: undefined }, 'nwc_url must be a string'],
    ['a URL of another scheme', { nwc_url: 'https://wallet.example' }, 'nwc_url must be a connection string'],
  ])('rejects %s and connects no wallet', async (_, wrong, message) => {
    const [account, wallet] = [await world.createAccount(), await world.createNwcWallet()];
    const answer = await world.connectWallet(account, wallet, wrong);
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(message)]);
    expect(await state(account)).toMatchObject({ connected: false, updated_at: null });
  });

  test('rejects a wallet that does not support payment requests, with the reason', async () => {
    const [account, wallet] = [await world.createAccount(), await world.createNwcWallet({ mode: 'no pay_invoice' })];
    const answer = await world.connectWallet(account, wallet);
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining('pay_invoice')]);
  });
});
