import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { readSettings } from '#foundation';
import { BACKEND_KINDS } from './backends.ts';

const HASH = 'ab'.repeat(32);
const requests: IncomingHttpHeaders[] = [];
/** Rejects every request, after the login of Monero was requested. */
const server = createServer((request, response) => {
  requests.push(request.headers);
  response.setHeader('www-authenticate', 'Digest qop="auth",algorithm=MD5,realm="r",nonce="n",stale=false');
  response.statusCode = 401;
  response.end('{}');
});
let url: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());
beforeEach(() => void requests.splice(0));

/** Opens one backend. @returns its settings, whose secrets can be replaced */
function openBackend(name: string, variables: Readonly<Record<string, string>>) {
  const settings = readSettings(variables) as unknown as Record<string, unknown>;
  const kind = BACKEND_KINDS.find((backendKind) => backendKind.name === name);
  const backend = kind?.open(settings as never, readPayments());
  if (!backend) throw new Error(`${name} is not configured`);
  return { backend, settings };
}

describe('the next request after a secret was replaced uses the new secret', () => {
  test.each<[string, string, Readonly<Record<string, string>>, string, string]>([
    ['lnd', 'grpc-metadata-macaroon', { LND_REST_URL: '', LND_MACAROON: '01' }, 'lndMacaroon', '02'],
    ['cln', 'rune', { CLN_REST_URL: '', CLN_RUNE: 'one' }, 'clnRune', 'two'],
    ['btcpay', 'authorization', { BTCPAY_URL: '', BTCPAY_API_KEY: 'one', BTCPAY_STORE_ID: 's' }, 'btcpayApiKey', 'two'],
    ['phoenixd', 'authorization', { PHOENIXD_URL: '', PHOENIXD_PASSWORD: 'one' }, 'phoenixdPassword', 'two'],
    ['monero', 'authorization', { MONERO_WALLET_RPC_URL: '', MONERO_WALLET_RPC_LOGIN: 'a:b' }, 'moneroLogin', 'two:b'],
    ['stripe', 'authorization', { STRIPE_API_URL: '', STRIPE_SECRET_KEY: 'sk_live_one' }, 'stripeKey', 'sk_live_two'],
  ])('%s', async (name, header, variables, setting, replacement) => {
    const withUrl = Object.entries(variables).map(([variable, value]) => [variable, value === '' ? url : value]);
    const { backend, settings } = openBackend(name, Object.fromEntries(withUrl));
    const reference = name === 'monero' ? '1:1795343932:200:topup:5VKK2E72h' : name === 'btcpay' ? 'o/BTC-LN/i' : HASH;
    const send = async () => {
      await backend.fetchPayments([reference]).catch(() => {});
      return requests.at(-1)?.[header];
    };

    const before = await send();
    settings[setting] = replacement;
    const after = await send();
    await backend.close();

    const decode = (value: unknown) => `${value} ${Buffer.from(String(value).replace('Basic ', ''), 'base64')}`;
    expect(decode(after)).toContain(replacement.replace(/:.*/, ''));
    expect(decode(before)).not.toContain(replacement.replace(/:.*/, ''));
  });
});

test.each([
  [
    'btcpay',
    'btcpay-sig',
    'btcpayWebhookSecret',
    { BTCPAY_URL: 'http://b', BTCPAY_API_KEY: 'k', BTCPAY_STORE_ID: 's' },
  ],
  ['phoenixd', 'x-phoenix-signature', 'phoenixdWebhookSecret', { PHOENIXD_URL: 'http://p', PHOENIXD_PASSWORD: 'k' }],
])('%s accepts webhooks under a replaced secret', async (name, header, setting, variables) => {
  const { backend, settings } = openBackend(name, variables);
  const body = Buffer.from('{}');
  const signature = createHmac('sha256', 'two').update(body).digest('hex');
  const headers = { [header]: name === 'btcpay' ? `sha256=${signature}` : signature };

  settings[setting] = 'one';
  const before = await backend.parseWebhook?.({ headers, body });
  settings[setting] = 'two';
  const after = await backend.parseWebhook?.({ headers, body });
  await backend.close();

  expect([before, after]).toEqual([undefined, []]);
});
