import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, jest, test } from '@jest/globals';
import { SettingError } from './setting-types.ts';
import { SETTINGS } from './settings.ts';
import { readSettings } from './settings-reader.ts';

const KEY = '0123456789abcdef'.repeat(4);
const MASTER_KEYS = '64 hexadecimal digits, or several different keys of this form separated by commas';

/** Returns the error message for an invalid environment. */
function complaint(env: Record<string, string>): string {
  try {
    readSettings(env);
  } catch (error) {
    expect(error).toBeInstanceOf(SettingError);
    return (error as Error).message;
  }
  throw new Error('the settings were accepted');
}

describe('without any setting', () => {
  test('the settings have these values, and external services are simulated by the sandbox', () => {
    expect(readSettings({})).toEqual({
      simulation: { usesSandbox: true, providers: true, payments: true },
      port: 3000,
      creditIdInference: false,
      host: '127.0.0.1',
      sandboxPort: 3100,
      sandboxUrl: undefined,
      publicBaseUrl: undefined,
      allowSandbox: false,
      plaintextStores: [],
      logLevel: 'info',
      dataDir: '.data',
      databaseUrl: undefined,
      migrate: 'start',
      eventStoreUrl: undefined,
      masterKeys: undefined,
      catalogueDir: undefined,
      catalogueDay: undefined,
      lndUrl: 'http://127.0.0.1:3100/lnd',
      lndMacaroon: '00',
      lndCertificates: undefined,
      btcpayUrl: 'http://127.0.0.1:3100/btcpay',
      btcpayStoreId: 'sandbox',
      btcpayApiKey: 'sandbox',
      btcpayWebhookSecret: 'sandbox',
      stripeKey: 'sk_test_sandbox',
      stripeWebhookSecret: 'sandbox',
      stripeUrl: 'http://127.0.0.1:3100',
      cardMinUsd: 5,
      cardMaxUsd: 1_000,
      topupBackends: {},
      topupConfirmations: {},
      privateSources: [],
      s3Region: 'us-east-1',
      backupEveryMs: 86_400_000,
      backupRetentionDays: 30,
      maxBytesInFlight: 512 * 1024 ** 2,
      maxConnections: 10_000,
      maxConnectionsPerAddress: 1_000,
      uploadsMaxBytes: 4 * 1024 ** 3,
      maxOpenInvoices: 50,
      videoPollsPerSecond: 15,
      pollsPerSecond: 50,
      autoTopupsPerDay: 50,
      autoTopupUsdPerDay: 1_000,
      privateRelays: ['ws://127.0.0.1:3100/relay'],
      krakenUrl: 'http://127.0.0.1:3100/kraken',
      coinbaseUrl: 'http://127.0.0.1:3100/coinbase',
      coinGeckoUrl: 'http://127.0.0.1:3100/coingecko',
      coinGeckoKey: undefined,
      maxSpreadPercent: 2,
      maxJumpPercent: 20,
      loneSourceCoins: [],
      zdrAgreements: [],
      connectTimeoutMs: 5_000,
      idleTimeoutMs: 60_000,
      firstCommentMs: 12_000,
      freePerMinute: 20,
      freePerDay: 200,
      freePerDayOfAddress: 2_000,
      accountsByOperator: false,
      accountsPerHour: 1_000,
      invoicesPerHourOfAddress: 1_000,
      invoicesPerHourOfAccount: 200,
      invoicesPerHourOfKey: 100,
      changesPerHour: 1_000,
      storedBytesPerAccount: 256 * 1024 * 1024,
      invalidCredentialsPerMinute: 600,
      refusedPerHour: 50,
      absorbedPerHour: 1_000_000_000_000n,
      minExposure: 20_000_000_000n,
      exposurePercent: 3,
      maxWaitingRequests: 64,
      maxHoldWaitMs: 30_000,
      trustedProxies: [],
      challengesPerMinute: 60,
      challengesPerMinuteInAll: 1_200,
      totalTimeoutMs: 600_000,
      drainTimeoutMs: 120_000,
      heldInFullTokens: 4_096,
      drainDelayMs: 5_000,
      shutdownTimeoutMs: undefined,
      startTimeoutMs: 120_000,
      maxLagMs: 5_000,
      maxClockSkewMs: 60_000,
      providers: new Map(),
    });
  });

  test.each(Object.values(SETTINGS))('an empty $variable counts as unset', ({ variable }) => {
    for (const value of ['', '  ']) expect(readSettings({ [variable]: value })).toEqual(readSettings({}));
  });
});

describe('a setting', () => {
  test.each<[string, string, keyof typeof SETTINGS, unknown]>([
    ['PORT', '0', 'port', 0],
    ['PORT', '65535', 'port', 65_535],
    ['PORT', ' 8080\n', 'port', 8_080],
    ['LOG_LEVEL', 'fatal', 'logLevel', 'fatal'],
    ['HOST', '::', 'host', '::'],
    ['DATA_DIR', '/somewhere/else', 'dataDir', '/somewhere/else'],
    ['PUBLIC_BASE_URL', 'https://api.example.org/', 'publicBaseUrl', 'https://api.example.org'],
    ['DATABASE_URL', 'postgresql://a:b@db/books', 'databaseUrl', 'postgresql://a:b@db/books'],
    ['EVENTSTORE_URL', 'esdb+discover://a:b@es:2113', 'eventStoreUrl', 'esdb+discover://a:b@es:2113'],
    ['EVENTSTORE_URL', 'esdb://a:2113,b:2113,c?tls=true', 'eventStoreUrl', 'esdb://a:2113,b:2113,c?tls=true'],
    ['MASTER_KEY', KEY.toUpperCase(), 'masterKeys', [KEY]],
    ['MASTER_KEY', `${KEY}, ${'7e'.repeat(32)}`, 'masterKeys', [KEY, '7e'.repeat(32)]],
    ['SANDBOX_URL', 'http://sandbox:3100/', 'sandboxUrl', 'http://sandbox:3100'],
    ['LND_MACAROON', '0201036C6E64', 'lndMacaroon', '0201036c6e64'],
    ['MONERO_WALLET_RPC_LOGIN', 'shop:pass: word', 'moneroLogin', 'shop:pass: word'],
    [
      'CLN_RUNE',
      'tU-RLjMiDpY2U0o3W1oFowar36RFGpWloPbW9-RuZdo9MyZpZD0w',
      'clnRune',
      'tU-RLjMiDpY2U0o3W1oFowar36RFGpWloPbW9-RuZdo9MyZpZD0w',
    ],
    ['CATALOGUE_DIR', import.meta.dirname, 'catalogueDir', import.meta.dirname],
    ['CATALOGUE_DAY', '2028-02-29', 'catalogueDay', '2028-02-29'],
    ['DISCONNECT_DRAIN_MS', '0', 'drainTimeoutMs', 0],
    ['BACKUP_EVERY', '90m', 'backupEveryMs', 5_400_000],
    ['BACKUP_EVERY', '1d', 'backupEveryMs', 86_400_000],
  ])('accepts %s=%j', (variable, value, name, meant) => {
    expect(readSettings({ [variable]: value })[name]).toEqual(meant);
  });

  test('for the port of the sandbox changes the default addresses of simulated services', () => {
    const env = { SANDBOX_PORT: '4100', KRAKEN_URL: 'https://api.kraken.com' };
    expect(readSettings(env)).toMatchObject({
      lndUrl: 'http://127.0.0.1:4100/lnd',
      krakenUrl: 'https://api.kraken.com',
      coinbaseUrl: undefined,
    });
  });
});

test('exchange rates are not simulated if a source or payment backend is set; coins may have a lone source', () => {
  const sources = (env: Record<string, string>) => {
    const { krakenUrl, coinbaseUrl, coinGeckoUrl } = readSettings(env);
    return [krakenUrl, coinbaseUrl, coinGeckoUrl];
  };
  const coingecko = 'https://api.coingecko.com';
  expect(sources({ COINGECKO_URL: coingecko })).toEqual([undefined, undefined, coingecko]);
  expect(sources({ LND_REST_URL: 'https://lnd:8080' })).toEqual([undefined, undefined, undefined]);
  expect(readSettings({ RATE_LONE_SOURCE_COINS: 'XMR, LTC' }).loneSourceCoins).toEqual(['XMR', 'LTC']);
});

describe('payment backends', () => {
  test('are not simulated by the sandbox if one of them is set', () => {
    const phoenixd = { PHOENIXD_URL: 'http://10.0.0.1:9740', PHOENIXD_PASSWORD: 'p' };
    expect(readSettings(phoenixd).lndUrl).toBeUndefined();
    expect(readSettings({ LND_REST_URL: 'https://lnd:8080' }).lndUrl).toBe('https://lnd:8080');
  });

  test('require their credentials if they are real, as S3 does, but no webhook secret', () => {
    const env = { BTCPAY_URL: 'https://pay.example', BTCPAY_STORE_ID: 'store', BTCPAY_API_KEY: 'key' };
    expect(readSettings(env)).toMatchObject({ lndUrl: undefined, btcpayApiKey: 'key', btcpayWebhookSecret: undefined });
    expect(complaint({ ...env, BTCPAY_API_KEY: '' })).toBe('BTCPAY_API_KEY must be set if BTCPAY_URL is set.');
    expect(complaint({ ...env, BTCPAY_STORE_ID: '' })).toBe('BTCPAY_STORE_ID must be set if BTCPAY_URL is set.');
    expect(complaint({ CLN_REST_URL: 'https://cln:3010' })).toBe('CLN_RUNE must be set if CLN_REST_URL is set.');
    expect(complaint({ PHOENIXD_URL: 'http://p:9740' })).toBe('PHOENIXD_PASSWORD must be set if PHOENIXD_URL is set.');
    expect(complaint({ S3_ENDPOINT: 'http://s3:9000' })).toBe('S3_BUCKET must be set if S3_ENDPOINT is set.');
    const backups = readSettings({ S3_ENDPOINT: 'http://s3:9000', BACKUP_S3_BUCKET: 'backups' });
    expect(backups).toMatchObject({ s3Bucket: undefined, backupS3Bucket: 'backups' });
    expect(complaint({ S3_ACCESS_KEY_ID: 'a' })).toBe('S3_SECRET_ACCESS_KEY must be set if S3_ACCESS_KEY_ID is set.');
  });

  test('include Stripe at its own address if a valid Stripe key is set', () => {
    const env = { STRIPE_SECRET_KEY: 'rk_live_abc' };
    expect(readSettings(env)).toMatchObject({
      stripeKey: 'rk_live_abc',
      stripeUrl: 'https://api.stripe.com',
      stripeWebhookSecret: undefined,
      lndUrl: undefined,
    });
    expect(readSettings({ LND_REST_URL: 'https://lnd:8080' }).stripeKey).toBeUndefined();
    expect(complaint({ STRIPE_SECRET_KEY: 'pk_live_abc' })).toBe(
      'STRIPE_SECRET_KEY must be a secret or restricted key that begins with sk_ or rk_.',
    );
    expect(complaint({ ...env, STRIPE_API_URL: 'https://a.example/stripe' })).toMatch(
      /^STRIPE_API_URL must be an address without a path/,
    );
  });

  test('can be selected by payment method', () => {
    const { topupBackends } = readSettings({ TOPUP_BACKENDS: 'btc-lightning=btcpay, xmr=monero' });
    expect(topupBackends).toEqual({ 'btc-lightning': 'btcpay', xmr: 'monero' });
  });
});

describe('providers', () => {
  const vendor = (name: string) => ({
    slug: name,
    env: name.toUpperCase(),
    baseUrl: `https://${name}.example/v1`,
    sandboxPath: `/${name}/v1`,
  });
  const reached = (env: Record<string, string>) =>
    Object.fromEntries(readSettings(env, () => [vendor('one'), vendor('two')]).providers);
  const real = (name: string, credential: string) => ({ baseUrl: `https://${name}.example/v1`, credential });
  const played = (name: string, at = 'http://127.0.0.1:3100') => ({
    baseUrl: `${at}/${name}/v1`,
    credential: 'sandbox',
    isSimulated: true,
  });

  test('are all simulated by the sandbox, at its address, if none has a key', () => {
    expect(reached({})).toEqual({ one: played('one'), two: played('two') });
    expect(reached({ SANDBOX_PORT: '4100' }).one).toEqual(played('one', 'http://127.0.0.1:4100'));
    expect(reached({ SANDBOX_URL: 'http://sandbox:1/' }).one).toEqual(played('one', 'http://sandbox:1'));
  });

  test('are called at their own address with a key, and those without a key are omitted', () => {
    expect(reached({ ONE_API_KEY: 'k1' })).toEqual({ one: real('one', 'k1') });
    expect(reached({ ONE_API_KEY: 'k1', TWO_API_KEY: 'k2' })).toEqual({
      one: real('one', 'k1'),
      two: real('two', 'k2'),
    });
  });

  test('are called at a configured address, without a credential unless they have one, and others are omitted', () => {
    const one = { ONE_BASE_URL: 'http://127.0.0.1:9/v1/' };
    expect(reached(one)).toEqual({ one: { baseUrl: 'http://127.0.0.1:9/v1', credential: undefined } });
    expect(reached({ ...one, TWO_API_KEY: 'k' })).toEqual({ one: reached(one).one, two: real('two', 'k') });
    expect(reached({ ...one, ONE_API_KEY: 'k' })).toEqual({ one: { ...reached(one).one, credential: 'k' } });
    expect(reached({ ...one, ALLOW_SANDBOX: 'true' })).toEqual(reached(one));
  });

  test.each([
    ['its URL', 'http://127.0.0.1:3100/two/v1', {}],
    ['its port under another name of this host', 'http://localhost:3100/two/v1', {}],
    ['SANDBOX_URL', 'http://sandbox:1/two/v1', { SANDBOX_URL: 'http://sandbox:1' }],
  ])('at an address of the sandbox, %s, are simulated, which configures no provider', (_, address, env) => {
    const two = { baseUrl: address, credential: 'sandbox', isSimulated: true };
    expect(reached({ ...env, TWO_BASE_URL: address })).toEqual({ ...reached(env), two });
    expect(reached({ ...env, TWO_BASE_URL: address, ONE_API_KEY: 'k' })).toEqual({ one: real('one', 'k'), two });
  });

  test('with the key of the sandbox are simulated, or omitted if another one is configured', () => {
    expect(reached({ ONE_API_KEY: 'sandbox' })).toEqual(reached({}));
    expect(reached({ ONE_API_KEY: 'sandbox', TWO_API_KEY: 'k' })).toEqual({ two: real('two', 'k') });
  });

  test.each(['two\nlines', 'a key', 'sk-“x”', 'sk-ü', 'a\u0000b'])(
    'with the key %j, which no request can have, prevent the start',
    (key) => {
      expect(() => reached({ ONE_API_KEY: key })).toThrow('ONE_API_KEY must consist of printable ASCII characters');
    },
  );

  test.each(['http://user:pw@one.example/v1', 'http://one.example/v1?x=1', 'http://one.example/v1#x'])(
    'at %s, of which parts would be ignored, prevent the start',
    (address) => {
      expect(() => reached({ ONE_BASE_URL: address })).toThrow(
        'ONE_BASE_URL must be an address without a login, a query and a fragment',
      );
    },
  );

  test('with a key in a file are configured', async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-key-'));
    const file = path.join(directory, 'key');
    await writeFile(file, 'k1\n');
    expect(reached({ ONE_API_KEY_FILE: file })).toEqual({ one: real('one', 'k1') });
    await rm(directory, { recursive: true });
  });

  const simulated = (env: Record<string, string>) => readSettings(env, () => [vendor('one'), vendor('two')]);

  test.each([
    [{ ONE_API_KEY: 'k' }],
    [{ ONE_BASE_URL: 'http://127.0.0.1:9/v1' }],
    [{ PUBLIC_BASE_URL: 'https://api.example.org' }],
  ])('that are real, or a public address, disable the sandbox and leave no payment backend: %j', (env) => {
    const nothing = { usesSandbox: false, payments: false };
    expect(simulated(env)).toMatchObject({
      simulation: nothing,
      lndUrl: undefined,
      btcpayUrl: undefined,
      stripeKey: undefined,
      stripeUrl: 'https://api.stripe.com',
      krakenUrl: undefined,
      coinbaseUrl: undefined,
      coinGeckoUrl: undefined,
      privateRelays: [],
    });
    expect(simulated({ ...env, ALLOW_SANDBOX: 'true' })).toMatchObject({
      simulation: { usesSandbox: true, payments: true },
      lndUrl: 'http://127.0.0.1:3100/lnd',
      stripeKey: 'sk_test_sandbox',
      krakenUrl: 'http://127.0.0.1:3100/kraken',
      privateRelays: ['ws://127.0.0.1:3100/relay'],
    });
  });

  test('treat empty settings as unset', () => {
    expect(reached({ ONE_BASE_URL: ' ', ONE_API_KEY: '' })).toEqual(reached({}));
  });

  test('stop the start if an address is invalid', () => {
    const wrong = () => reached({ TWO_BASE_URL: 'ftp://two.example' });
    expect(wrong).toThrow(SettingError);
    expect(wrong).toThrow('TWO_BASE_URL must be an address that starts with http:// or https://');
  });

  test('come from the configured catalogue, and an error in it stops the start with a sentence', () => {
    const vendorsIn = (directory: string | undefined) => {
      throw new Error(`${directory} cannot be used: why`);
    };
    const read = () => readSettings({ CATALOGUE_DIR: import.meta.dirname }, vendorsIn);
    expect(read).toThrow(new SettingError(`The catalogue ${import.meta.dirname} cannot be used: why.`));
  });
});

describe('an invalid setting', () => {
  const numbers = ['abc', '-1', '1.5', '1e3', '0x10', '12 000', '٣'];
  test.each(numbers)('is reported in one sentence that names it: PORT=%s', (value) => {
    expect(complaint({ PORT: value })).toBe(`PORT must be an integer from 0 to 65535, not "${value}".`);
  });

  test.each([
    ['CATALOGUE_DIR', '/nowhere', 'a directory'],
    ['CATALOGUE_DAY', '2026-02-29', 'a date, such as 2026-11-29'],
    ['CATALOGUE_DAY', '2026-2-1', 'a date, such as 2026-11-29'],
    ['CATALOGUE_DAY', '+002026-02-01', 'a date, such as 2026-11-29'],
    ['BACKUP_EVERY', '30s', 'a time from 1m to 30d, such as 30m, 6h or 1d'],
    ['BACKUP_EVERY', '6', 'a time from 1m to 30d, such as 30m, 6h or 1d'],
    ['PRIVATE_SOURCES', 'http://10.0.0.7/pictures', 'addresses that start with http:// or https:// and have no path'],
    ...[
      'gateway',
      '10.0.0.0/0',
      '10.0.0.0/33',
      '10.0.0.7/',
      '::/129',
      '10.0.0.7,,',
      'fe80::1%eth0',
      '0.0.0.0/1,128.0.0.0/1',
      '::/80',
    ].map((value) => ['TRUSTED_PROXIES', value, 'addresses such as 10.0.0.7 or networks such as 10.0.0.0/8'] as const),
    ['PRIVATE_SOURCES', 'http://a, ftp://b', 'addresses that start with http:// or https:// and have no path'],
    ['UPLOADS_MAX_BYTES', '1000', 'an integer from 67108864 to 1099511627776'],
    ['PORT', '65536', 'an integer from 0 to 65535'],
    ['SANDBOX_PORT', '70000', 'an integer from 0 to 65535'],
    ['UPSTREAM_CONNECT_TIMEOUT_MS', '0', 'an integer from 1 to 600000'],
    ['UPSTREAM_IDLE_TIMEOUT_MS', '3600001', 'an integer from 1 to 3600000'],
    ['UPSTREAM_TOTAL_TIMEOUT_MS', 'none', 'an integer from 1 to 3600000'],
    ['DISCONNECT_DRAIN_MS', '-5', 'an integer from 0 to 3600000'],
    ['SHUTDOWN_TIMEOUT_MS', '9999999', 'an integer from 0 to 3600000'],
    ['READY_MAX_LAG_MS', '0', 'an integer from 1 to 3600000'],
    ['LOG_LEVEL', 'loud', 'one of info, trace, debug, warn, error, fatal'],
    ['LOG_LEVEL', 'INFO', 'one of info, trace, debug, warn, error, fatal'],
    ['PUBLIC_BASE_URL', 'api.example.org', 'an address that starts with http:// or https://'],
    ['PUBLIC_BASE_URL', 'https:api.example.org', 'an address that starts with http:// or https://'],
    ['PRIVATE_RELAYS', 'http://127.0.0.1', 'addresses that start with ws:// or wss://'],
    ['TOPUP_BACKENDS', 'btc', 'pairs such as btc=…,ltc=…'],
    ['TOPUP_BACKENDS', 'btc=lnd=x', 'pairs such as btc=…,ltc=…'],
    ['TOPUP_CONFIRMATIONS', 'btc=few', 'pairs such as btc=…,ltc=…'],
    ['LND_REST_URL', 'https://', 'an address that starts with http:// or https://'],
    ['KRAKEN_URL', 'kraken', 'an address that starts with http:// or https://'],
    ['RATE_MAX_SPREAD', '0', 'an integer from 1 to 50'],
    ['RATE_LONE_SOURCE_COINS', 'XMR;LTC', 'codes of coins such as LTC,XMR'],
    ['COINBASE_URL', '//coinbase', 'an address that starts with http:// or https://'],
    ['DATABASE_URL', 'mysql://db/books', 'an address that starts with postgres:// or postgresql://'],
    ['EVENTSTORE_URL', 'http://es:2113', 'an address that starts with esdb:// or esdb+discover://'],
    ['LND_TLS_CERT', '/nowhere/tls.cert', 'a file that can be read'],
    ['LND_TLS_CERT', import.meta.dirname, 'a file that can be read'],
  ])('is reported in one sentence that names it: %s=%s', (variable, value, must) => {
    expect(complaint({ [variable]: value })).toBe(`${variable} must be ${must}, not "${value}".`);
  });

  test.each([
    ['esdb://user:s3cret:a:2113', 'from character 19 on: expected ", or ?key=value"'],
    ['esdb://user:s3cret@a?keepAliveInterval=soon', 'from character 40 on: expected "Integer"'],
    ['esdb://user:s3cret@a?tls=no', 'from character 26 on: expected "true or false"'],
    [
      'esdb://user:s3cret@a?keepaliveintervall=1',
      ': Unknown option key "keepaliveintervall", setting will be ignored.',
    ],
    ['esdb://s3cret@a', 'before "@": write a user as user:password@, with %40 for each "@" in it'],
  ])('is reported without its password: EVENTSTORE_URL=%s', (value, why) => {
    const warn = jest.spyOn(console, 'warn');
    const said = complaint({ EVENTSTORE_URL: value });
    expect(said.replace(/\.+$/, '')).toBe(
      `EVENTSTORE_URL is invalid${why.startsWith(':') ? '' : ' '}${why}`.replace(/\.+$/, ''),
    );
    expect(said).not.toContain('s3cret');
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  test.each([
    ['MASTER_KEY', 'secret', MASTER_KEYS],
    ['MASTER_KEY', KEY.slice(1), MASTER_KEYS],
    ['MASTER_KEY', `${KEY}0`, MASTER_KEYS],
    ['MASTER_KEY', `${KEY},`, MASTER_KEYS],
    ['MASTER_KEY', `${KEY},${KEY}`, MASTER_KEYS],
    ['MASTER_KEY', KEY.replace('0', 'g'), MASTER_KEYS],
    ['LND_MACAROON', '/root/admin.macaroon', 'hexadecimal digits'],
    ['LND_MACAROON', '020', 'hexadecimal digits'],
    ['MONERO_WALLET_RPC_LOGIN', 'hush', 'a user and a password with a colon between them'],
    ['CLN_RUNE', 'hu sh', 'a rune'],
    ['PHOENIXD_PASSWORD', 'hu sh', 'a password'],
    ['NWC_RECEIVE_URL', 'https://wallet', 'a connection string that starts with nostr+walletconnect://'],
    ['PHOENIXD_WEBHOOK_SECRET', 'hu sh', 'a secret'],
  ])('is reported without its secret value: %s', (variable, value, must) => {
    expect(complaint({ [variable]: value })).toBe(`${variable} must be ${must}.`);
  });

  test.each([
    ['mysql://me:hush@db/books', 'mysql://***@db/books'],
    ['mysql://me:hu/sh@db/books', 'mysql://***@db/books'],
    ['mysql://me:hu@sh@db/books', 'mysql://***@db/books'],
    ['me:hush@db/books', '***@db/books'],
  ])('is reported without its password: DATABASE_URL=%s', (value, shown) => {
    expect(complaint({ DATABASE_URL: value })).toContain(`not "${shown}".`);
  });
});
