/**
 * Secrets of payment backends and wallets are seeded, and payments are received through the Lightning backends and from
 * a wallet. Then the backends fail, and repeat in their errors what they received. No secret may appear in the log, the
 * responses or the database.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { dumpDatabase, LogTap, type TestAccount, type TestResponse, TestWorld } from '#testing';
import { startSandbox } from '../../../sandbox/src/sandbox.ts';

const secret = () => randomBytes(20).toString('hex');
const PLANTED: Readonly<Record<string, string>> = {
  LND_MACAROON: secret(),
  BTCPAY_API_KEY: secret(),
  BTCPAY_WEBHOOK_SECRET: secret(),
  PHOENIXD_PASSWORD: secret(),
  PHOENIXD_WEBHOOK_SECRET: secret(),
  CLN_RUNE: secret(),
  STRIPE_SECRET_KEY: `sk_test_${secret()}`,
  STRIPE_WEBHOOK_SECRET: `whsec_${secret()}`,
  COINGECKO_API_KEY: secret(),
};
const LIGHTNING = ['lnd', 'btcpay', 'phoenixd', 'cln'];

let world: TestWorld;
let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let echo: Server | undefined;
let account: TestAccount;
const log = new LogTap();
const gateways = new Map<string, string>();
const answers: string[] = [];
const secrets = new Map(Object.entries(PLANTED));

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  const { url } = sandbox;
  world = await TestWorld.openWithSagas({
    LOG_LEVEL: 'trace',
    SANDBOX_PORT: new URL(url).port,
    PRIVATE_RELAYS: `${url.replace('http', 'ws')}/relay`,
    LND_REST_URL: `${url}/lnd`,
    BTCPAY_URL: `${url}/btcpay`,
    BTCPAY_STORE_ID: 'sandbox',
    PHOENIXD_URL: `${url}/phoenixd`,
    CLN_REST_URL: `${url}/cln`,
    STRIPE_API_URL: url,
    ...PLANTED,
  });
  for (const name of LIGHTNING)
    gateways.set(name, await world.addGateway({ topupBackends: { 'btc-lightning': name } }));
  account = await world.createAccount();
  secrets.set('credit_id', account.creditId);
  secrets.set('API key', account.apiKey);
});

afterAll(async () => {
  log.restore();
  await world.close();
  if (echo) {
    echo.close();
    echo.closeAllConnections();
  } else await sandbox.close();
});

async function keep(asked: Promise<TestResponse>): Promise<TestResponse['body']> {
  const { text, body } = await asked;
  answers.push(text);
  return body;
}

async function inSandbox(path: string, body: object): Promise<Readonly<Record<string, string>>> {
  const answer = await fetch(sandbox.url + path, { method: 'POST', body: JSON.stringify(body) });
  return (await answer.json()) as Readonly<Record<string, string>>;
}

const invoiceOf = (api: string | undefined) =>
  keep(world.post('/topup/create/btc-lightning', { amount: 10, currency: 'USD' }, account, api as string));

async function payByAll(): Promise<void> {
  for (const [name, api] of gateways) {
    const invoice: Readonly<Record<string, string>> = await invoiceOf(api);
    const { preimage } = await inSandbox('/wallet/pay', { invoice: invoice.lightning_invoice });
    secrets.set(`preimage of ${name}`, String(preimage));
    await world.waitUntil(
      async () =>
        ((await keep(world.get(`/topup/status/${invoice.invoice_id}`))) as { status: string }).status === 'Settled',
    );
  }
  const wallet = await inSandbox('/nwc/wallets', {});
  const nwcUrl = String(wallet.nwc_url);
  secrets.set('secret of the wallet', String(new URL(nwcUrl).searchParams.get('secret')));
  const settings = { threshold_usd: 100 };
  const connected = await keep(world.connectWallet(account, { id: String(wallet.id), nwc_url: nwcUrl }, settings));
  expect(connected).toMatchObject({ connected: true });
  await world.waitUntil(
    async () => ((await keep(world.getAutoTopup(account))) as { last_topup_at: unknown }).last_topup_at !== null,
  );
  const state = await (await fetch(`${sandbox.url}/nwc/wallets/${wallet.id}`)).json();
  const { preimage } = (state as { payments: { preimage?: string }[] }).payments[0] ?? {};
  if (preimage !== undefined) secrets.set('preimage of the wallet', preimage);
}

/** Sends forged, valid and malformed webhooks. */
async function hook(): Promise<void> {
  for (const [name, header, key] of [
    ['btcpay', 'btcpay-sig', 'BTCPAY_WEBHOOK_SECRET'],
    ['phoenixd', 'x-phoenix-signature', 'PHOENIXD_WEBHOOK_SECRET'],
    ['stripe', 'stripe-signature', 'STRIPE_WEBHOOK_SECRET'],
  ] as const) {
    const body = JSON.stringify({ paymentHash: 'x', storeId: 'sandbox' });
    const signature = createHmac('sha256', PLANTED[key] as string)
      .update(body)
      .digest('hex');
    for (const value of [`sha256=${signature}`, signature, 'nonsense'])
      await keep(world.send('POST', `/topup/webhooks/${name}`, { headers: { [header]: value }, body }));
  }
}

/** Replaces all backends with a server whose errors repeat the headers and the body of the request. */
async function breakAll(): Promise<void> {
  const { port } = new URL(sandbox.url);
  await sandbox.close();
  for (const api of gateways.values()) await invoiceOf(api);
  echo = createServer(async (asked, answer) => {
    let body = '';
    for await (const piece of asked) body += piece;
    const message = JSON.stringify({ headers: asked.headers, body });
    answer.writeHead(asked.url?.includes('ticker') ? 200 : 500, { 'content-type': 'application/json' });
    answer.end(JSON.stringify({ error: { message }, message, code: 'x' }));
  });
  await new Promise<void>((resolve) => echo?.listen(Number(port), '127.0.0.1', resolve));
  for (const api of gateways.values()) await invoiceOf(api);
  await keep(world.post('/topup/card/session', { amount: 10, currency: 'USD' }, account));
  await keep(world.getAutoTopup(account));
  await keep(world.send('DELETE', '/nwc-auto-topup/connection', { headers: { 'x-credit-id': account.creditId } }));
}

/** Returns a secret in its original form and in encodings that may hide it. */
function spellingsOf(planted: string): readonly string[] {
  const bytes = Buffer.from(planted);
  const raw = /^[0-9a-f]+$/.test(planted) ? [Buffer.from(planted, 'hex').toString('base64')] : [];
  const encoded = [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex'), encodeURIComponent(planted)];
  return [planted, `:${planted}`, ...raw, ...encoded].map((each) => each.toLowerCase());
}

/** Authenticates in every way that the `credit_id` allows, in requests that succeed and in requests that fail. */
async function askAsAccount(): Promise<void> {
  const { creditId } = account;
  const headers = { 'x-credit-id': creditId };
  await keep(world.post('/credits/balance', { credit_id: creditId }));
  await keep(world.get(`/queries/history?credit_id=${creditId}`));
  await keep(world.send('POST', '/keys', { headers, body: { name: 'Default' } }));
  await keep(world.send('GET', '/keys', { headers }));
  await keep(world.get(`/topup/status/x?credit_id=${creditId}`));
}

test('reveals no seeded secret in the log, the responses or the database', async () => {
  await askAsAccount();
  await payByAll();
  await hook();
  await breakAll();
  const stored = await dumpDatabase(world.databaseUrl);
  expect(stored.length).toBeGreaterThan(10_000);
  expect(log.text).toContain('"level"');
  expect(secrets.size).toBeGreaterThanOrEqual(Object.keys(PLANTED).length + LIGHTNING.length + 1);
  const places = { stored, logged: log.text, answers: answers.join('\n') };
  // These checks ensure that the search works, and that the intended failures have happened.
  expect(stored).toContain(world.getAccountId(account));
  expect(places.answers).toContain('lnbcrt');
  expect(answers.filter((each) => /"statusCode":50[23]/.test(each)).length).toBeGreaterThanOrEqual(
    2 * LIGHTNING.length,
  );
  const shown = [...secrets].flatMap(([name, planted]) =>
    Object.entries(places).flatMap(([place, text]) =>
      spellingsOf(planted).some((each) => text.toLowerCase().includes(each)) ? [`${name} in ${place}`] : [],
    ),
  );
  expect(shown).toEqual([]);
});
