import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readProviders } from '#catalogue';
import { createSelfSignedCertificate } from '#testing';
import { SETTINGS } from './settings.ts';
import { readSettings } from './settings-reader.ts';

const KEY = '0123456789abcdef'.repeat(4);
const CERTIFICATE = (await createSelfSignedCertificate()).cert;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-secrets-'));
});

afterAll(() => rm(directory, { recursive: true }));

async function writeSecret(content: string): Promise<string> {
  const file = path.join(directory, 'secret');
  await writeFile(file, content);
  return file;
}

test.each<[string, string, keyof typeof SETTINGS, unknown]>([
  ['MASTER_KEY', `${KEY},${'7e'.repeat(32)}\n`, 'masterKeys', [KEY, '7e'.repeat(32)]],
  ['DATABASE_URL', 'postgres://a:b@db/books\r\n', 'databaseUrl', 'postgres://a:b@db/books'],
  ['CONTENT_DATABASE_URL', 'postgres://a:b@db/content', 'contentDatabaseUrl', 'postgres://a:b@db/content'],
  ['EVENTSTORE_URL', 'esdb://a:b@es:2113\n', 'eventStoreUrl', 'esdb://a:b@es:2113'],
  ['LND_MACAROON', '0201\n', 'lndMacaroon', '0201'],
  ['BTCPAY_API_KEY', 'key\n', 'btcpayApiKey', 'key'],
  ['BTCPAY_WEBHOOK_SECRET', 'hush\n', 'btcpayWebhookSecret', 'hush'],
  ['CLN_RUNE', 'rune==\n', 'clnRune', 'rune=='],
  ['PHOENIXD_PASSWORD', 'hush\n', 'phoenixdPassword', 'hush'],
  ['PHOENIXD_WEBHOOK_SECRET', 'hush\n', 'phoenixdWebhookSecret', 'hush'],
  ['NWC_RECEIVE_URL', 'nostr+walletconnect://a?secret=b\n', 'nwcReceiveUrl', 'nostr+walletconnect://a?secret=b'],
  ['MONERO_WALLET_RPC_LOGIN', 'a:b\n', 'moneroLogin', 'a:b'],
  ['STRIPE_SECRET_KEY', 'sk_live_1\n', 'stripeKey', 'sk_live_1'],
  ['STRIPE_WEBHOOK_SECRET', 'whsec_1\n', 'stripeWebhookSecret', 'whsec_1'],
  ['COINGECKO_API_KEY', 'CG-1\n', 'coinGeckoKey', 'CG-1'],
  ['S3_ACCESS_KEY_ID', 'AKIA\n', 's3AccessKeyId', 'AKIA'],
  ['S3_SECRET_ACCESS_KEY', 'hush\n', 's3SecretAccessKey', 'hush'],
])('the value of %s may be in a file', async (variable, content, name, value) => {
  const [id, key] = [{ S3_ACCESS_KEY_ID: 'a' }, { S3_SECRET_ACCESS_KEY: 'b' }];
  const others = variable === 'S3_ACCESS_KEY_ID' ? key : variable === 'S3_SECRET_ACCESS_KEY' ? id : {};

  const settings = readSettings({ ...others, [`${variable}_FILE`]: await writeSecret(content) });

  expect(settings[name]).toEqual(value);
});

test('the API key of a provider may be in a file, and counts as set', async () => {
  const { providers } = readSettings({ OPENAI_API_KEY_FILE: await writeSecret('sk-1\n') }, readProviders);

  expect(providers).toEqual(new Map([['openai', { baseUrl: expect.any(String), credential: 'sk-1' }]]));
});

test('the value of a setting with a certificate is the content of its file', async () => {
  const file = await writeSecret(CERTIFICATE);

  expect(readSettings({ LND_TLS_CERT: file, CLN_TLS_CERT: file })).toMatchObject({
    lndCertificates: [CERTIFICATE.trim()],
    clnCertificates: [CERTIFICATE.trim()],
  });
});

test('a file may contain several certificates', async () => {
  const file = await writeSecret(`the current one\n${CERTIFICATE}the next one\n${CERTIFICATE}`);

  expect(readSettings({ LND_TLS_CERT: file })).toMatchObject({
    lndCertificates: [CERTIFICATE.trim(), CERTIFICATE.trim()],
  });
});

test('only secrets, addresses with passwords and certificates may be in files', () => {
  const readable = Object.values(SETTINGS).filter(({ fileVariable }) => fileVariable !== undefined);

  expect(readable).toHaveLength(21);
});

test.each([
  ['that does not exist', undefined, 'a file that can be read'],
  ['that is empty', ' \n', 'a file that is not empty'],
  ['that is too long', `hush${'x'.repeat(65_536)}`, 'a file of at most 65536 bytes'],
])('a file %s is reported by its path, without its content', async (_, content, requirement) => {
  const file = content === undefined ? path.join(directory, 'missing') : await writeSecret(content);

  expect(() => readSettings({ LND_MACAROON_FILE: file })).toThrow(
    `LND_MACAROON_FILE must be ${requirement}, not "${file}".`,
  );
});

test('an invalid value in a file is reported by its setting, without the content', async () => {
  const env = { LND_MACAROON_FILE: await writeSecret('hush') };

  expect(() => readSettings(env)).toThrow(/^LND_MACAROON must be hexadecimal digits\.$/);
});

test('a file without a certificate is reported by its setting', async () => {
  const env = { LND_TLS_CERT: await writeSecret('hush') };

  expect(() => readSettings(env)).toThrow(/^LND_TLS_CERT must be a file with a certificate in PEM format\.$/);
});

test('a setting and its file must not both be set', async () => {
  const env = { CLN_RUNE: 'rune', CLN_RUNE_FILE: await writeSecret('rune') };

  expect(() => readSettings(env)).toThrow(/^CLN_RUNE and CLN_RUNE_FILE must not both be set\.$/);
});
