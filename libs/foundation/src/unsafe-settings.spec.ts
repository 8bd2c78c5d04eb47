import { describe, expect, test } from '@jest/globals';
import { type Environment, SettingError } from './setting-types.ts';
import { readSettings } from './settings-reader.ts';
import { listUnsafeSettings } from './unsafe-settings.ts';

const VENDORS = [
  { slug: 'openai', env: 'OPENAI', baseUrl: 'https://api.openai.com/v1', sandboxPath: '/openai/v1' },
  { slug: 'exa', env: 'EXA', baseUrl: 'https://api.exa.ai', sandboxPath: '/exa' },
];
const KEY = '194be4f617c07e553dae554adbb41d15c94bb382a70de1e2129a9eb06d47fd7c';
/** Safe settings of a service that sells real models for real money. */
const REAL = {
  OPENAI_API_KEY: 'sk-real',
  LND_REST_URL: 'https://lnd.example.org',
  LND_MACAROON: '0201',
  PUBLIC_BASE_URL: 'https://api.example.org',
  DATABASE_URL: 'postgres://u:p@db.example.org/books?sslmode=verify-full',
  EVENTSTORE_URL: 'esdb://u:p@es.example.org:2113?tls=true',
  S3_ENDPOINT: 'https://s3.example.org',
  MASTER_KEY: KEY,
};

function findings(env: Environment): readonly string[] {
  return listUnsafeSettings(env, VENDORS);
}

/** Returns the problems of the real settings with these changes; '' means unset. */
function beside(env: Environment): readonly string[] {
  return findings({ ...REAL, ...env });
}

test('nothing is reported if all services are real, or all are simulated', () => {
  expect(findings(REAL)).toEqual([]);
  expect(findings({})).toEqual([]);
  expect(findings({ OPENAI_API_KEY: 'sandbox', EXA_BASE_URL: 'http://127.0.0.1:3100/exa' })).toEqual([]);
  expect(findings({ PUBLIC_BASE_URL: 'http://localhost:3000', DATABASE_URL: 'postgres://postgres/books' })).toEqual([]);
});

const WALLET = `nostr+walletconnect://${'ab'.repeat(32)}?relay=ws%3A%2F%2F127.0.0.1%3A3100%2Frelay&secret=1`;
const REMOTE_SANDBOX = { SANDBOX_URL: 'http://sandbox:1' };

test.each([
  ['no payment backend', { LND_REST_URL: '', LND_MACAROON: '' }],
  ['a provider with only an address', { OPENAI_API_KEY: '', OPENAI_BASE_URL: 'http://10.0.0.8/v1' }],
  ['an unused sandbox elsewhere', REMOTE_SANDBOX],
])('real services with %s are safe', (_, env) => {
  expect(beside(env)).toEqual([]);
});

describe('the sandbox together with real services is reported:', () => {
  const nobodyPays = { LND_REST_URL: '', LND_MACAROON: '' };
  test.each([
    ['a real node with simulated providers', { OPENAI_API_KEY: '' }, 'No provider has an API key or an address'],
    [
      'a node at the sandbox',
      { LND_REST_URL: 'http://127.0.0.1:3100/lnd' },
      'LND_REST_URL is the address of the sandbox',
    ],
    ['a node at a name of this host', { LND_REST_URL: 'http://localhost:3100/lnd' }, 'LND_REST_URL is the address of'],
    ['a simulated BTCPay', { BTCPAY_URL: 'http://[::1]:3100/btcpay' }, 'BTCPAY_URL is the address of the sandbox'],
    ['a simulated Stripe', { STRIPE_API_URL: 'http://127.0.0.1:3100' }, 'STRIPE_API_URL is the address of the sandbox'],
    ['a simulated wallet', { NWC_RECEIVE_URL: WALLET }, 'NWC_RECEIVE_URL is the address of the sandbox'],
    [
      'a simulated relay',
      { PRIVATE_RELAYS: 'wss://a.example,ws://127.0.0.1:3100/relay' },
      'PRIVATE_RELAYS is the address',
    ],
    ['simulated rates', { KRAKEN_URL: 'http://127.0.0.1:3100/kraken' }, 'KRAKEN_URL is the address of the sandbox'],
    [
      'a simulated provider',
      { EXA_BASE_URL: 'http://127.0.0.1:3100/exa' },
      'EXA_BASE_URL is the address of the sandbox',
    ],
    ['the sandbox with a key', { OPENAI_BASE_URL: 'http://127.0.0.1:3100/v1' }, 'OPENAI_BASE_URL is the address of'],
    ['a sandbox on another host', { ...REMOTE_SANDBOX, BTCPAY_URL: 'http://sandbox:1/btcpay' }, 'BTCPAY_URL is the'],
    ['only a public address', { ...nobodyPays, OPENAI_API_KEY: '' }, 'although PUBLIC_BASE_URL is real'],
    ['a day that is not today', { CATALOGUE_DAY: '2026-11-29' }, 'CATALOGUE_DAY must not be set'],
    ['test cards', { STRIPE_SECRET_KEY: 'sk_test_abc' }, 'STRIPE_SECRET_KEY is a test key'],
    ['the macaroon of the sandbox', { LND_MACAROON: '' }, 'LND_MACAROON must be set if LND_REST_URL is set.'],
  ])('%s', (_, env, complaint) => {
    expect(beside(env).join(' ')).toContain(complaint);
    expect(beside({ ...env, ALLOW_SANDBOX: 'true' })).toEqual([]);
  });
});

describe('an address without TLS', () => {
  test.each([
    ['DATABASE_URL', 'postgres://u:p@db.example.org/books', 'db.example.org'],
    ['DATABASE_URL', 'postgres://u:p@10.0.0.5/books?sslmode=disable', '10.0.0.5'],
    ['EVENTSTORE_URL', 'esdb://eventstore:2113?tls=false', 'eventstore'],
    ['EVENTSTORE_URL', 'esdb://eventstore:2113?tls=true&TLS=false', 'eventstore'],
    ['EVENTSTORE_URL', 'esdb://127.0.0.1:2113,es-2:2113?tls=false', 'es-2'],
    ['S3_ENDPOINT', 'http://minio:9000', 'minio'],
  ])('is reported for a store on another host: %s=%s', (variable, value, host) => {
    expect(beside({ [variable]: value })).toEqual([expect.stringMatching(`^${variable} has no TLS, and ${host} is`)]);
    expect(beside({ [variable]: value, PLAINTEXT_STORES: `elsewhere, ${host}` })).toEqual([]);
  });

  test.each([
    ['OPENAI_BASE_URL', 'http://api.example.com/v1'],
    ['LND_REST_URL', 'http://203.0.113.7:8080'],
    ['KRAKEN_URL', 'http://rates.example.com'],
    ['PUBLIC_BASE_URL', 'http://api.example.org'],
  ])('is reported for a public host: %s=%s', (variable, value) => {
    expect(beside({ [variable]: value })).toEqual([expect.stringMatching(`^${variable} must begin with https://`)]);
  });

  test.each([
    ['DATABASE_URL', 'postgres://u:p@127.0.0.1/books'],
    ['DATABASE_URL', 'postgres:///books?host=/var/run/postgresql'],
    ['DATABASE_URL', 'postgres://u:p@db.example.org/books?sslmode=no-verify'],
    ['S3_ENDPOINT', 'http://[::1]:9000'],
    ['OPENAI_BASE_URL', 'http://vllm:8000/v1'],
    ['OPENAI_BASE_URL', 'http://192.168.7.7:8000/v1'],
    ['LND_REST_URL', 'http://lnd.internal:8080'],
    ['PUBLIC_BASE_URL', 'http://abcdef.onion'],
  ])('is accepted for a private host or an encrypted connection: %s=%s', (variable, value) => {
    expect(beside({ [variable]: value })).toEqual([]);
  });
});

test.each([['00'.repeat(32)], ['0123456789abcdef'.repeat(4)], [Buffer.from([...Array(32).keys()]).toString('hex')]])(
  'the key %s is reported as not random, unless it comes after another key',
  (weak) => {
    expect(beside({ MASTER_KEY: weak })).toEqual([expect.stringMatching(/^MASTER_KEY is not random/)]);
    expect(beside({ MASTER_KEY: `${KEY},${weak}` })).toEqual([]);
    expect(findings({ MASTER_KEY: weak })).toEqual([]);
  },
);

test.each([
  [{ PORT: '4000', AUDIO_PORT: '4000' }, 'AUDIO_PORT must differ from PORT.'],
  [{ PORT: '4000', EXA_BASE_URL: 'http://localhost:4000/x' }, 'EXA_BASE_URL is the address of the gateway itself'],
  [{ SANDBOX_URL: 'http://127.0.0.1:3000' }, 'SANDBOX_URL is the address of the gateway itself'],
  [{ EXA_BASE_URL: 'http://0.0.0.0:3000/x' }, 'EXA_BASE_URL is the address of the gateway itself'],
  [{ EXA_BASE_URL: 'http://[::1]:3000/x' }, 'EXA_BASE_URL is the address of the gateway itself'],
  [{ PORT: '80', EXA_BASE_URL: 'http://127.0.0.9' }, 'EXA_BASE_URL is the address of the gateway itself'],
  [{ HOST: '10.0.0.7', EXA_BASE_URL: 'http://10.0.0.7:3000' }, 'EXA_BASE_URL is the address of the gateway itself'],
  [{ KRAKEN_URL: 'https://a.example/x', PUBLIC_BASE_URL: 'https://a.example' }, 'KRAKEN_URL is the address of the gat'],
])('contradictory addresses are reported: %j', (env, complaint) => {
  expect(findings(env).join(' ')).toContain(complaint);
});

test('invalid settings and unsafe combinations are reported together', () => {
  const env = {
    ...REAL,
    PORT: 'x',
    EXA_BASE_URL: 'exa',
    MASTER_KEY: '0'.repeat(64),
    DATABASE_URL: 'postgres://db/books',
  };
  const read = () => readSettings(env, () => VENDORS, listUnsafeSettings);
  expect(read).toThrow(SettingError);
  for (const variable of ['PORT', 'EXA_BASE_URL', 'MASTER_KEY', 'DATABASE_URL'])
    expect(read).toThrow(new RegExp(`(^|\\. )${variable} [^.]`));
});
