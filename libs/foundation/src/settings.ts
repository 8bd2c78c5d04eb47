/**
 * Settings come from the environment and from nowhere else. Each is read once, at start-up; one that is wrong stops the
 * start with a sentence that names it. `npm run docs` writes the table in docs/settings.md from this list.
 */

import {
  createPaymentUrlSetting,
  createPrivateRelaysSetting,
  createRateSourceSetting,
  createStripeKeySetting,
  createStripeUrlSetting,
  optionalWithUrl,
  requiredWith,
  requiredWithUrl,
  SANDBOX_KEY,
  SANDBOX_SETTINGS,
  toSandboxUrl,
} from './external-service-settings.ts';
import { FILE_SETTINGS } from './file-settings.ts';
import { LIMIT_SETTINGS } from './limit-settings.ts';
import { NETWORK_SETTINGS } from './network-settings.ts';
import {
  type ProviderConnectionSettings,
  type ProviderSettingsSpec,
  selectConfiguredProviders,
} from './provider-settings.ts';
import {
  choice,
  directory,
  dollars,
  type Environment,
  file,
  flag,
  hex,
  integer,
  list,
  optional,
  pairs,
  SettingError,
  SettingIssues,
  secret,
  text,
  url,
} from './setting-types.ts';
import { STORE_SETTINGS } from './store-settings.ts';
import { SAFETY_SETTINGS } from './unsafe-settings.ts';

export { SettingError } from './setting-types.ts';

export const SETTINGS = {
  port: integer('PORT', 3000, [0, 65_535], 'Port of the API'),
  host: text('HOST', '127.0.0.1', 'Address the API listens on'),
  audioPort: optional(
    integer(
      'AUDIO_PORT',
      0,
      [0, 65_535],
      'Port of the address of sound alone: /api/v1/audio, which the main address has as well; unset: none',
    ),
  ),
  healthPort: optional(
    integer(
      'HEALTH_PORT',
      0,
      [0, 65_535],
      'Port at which a projector or sagas say how they are: /health/live and /health/ready; unset: none',
    ),
  ),
  sandboxPort: SANDBOX_SETTINGS.port,
  sandboxUrl: SANDBOX_SETTINGS.url,
  publicBaseUrl: optional(url('PUBLIC_BASE_URL', ['http:', 'https:'], 'Address that clients reach the API at')),
  ...NETWORK_SETTINGS,
  ...LIMIT_SETTINGS,
  logLevel: choice(
    'LOG_LEVEL',
    ['info', 'trace', 'debug', 'warn', 'error', 'fatal'],
    'The least that is logged: trace, debug, info, warn, error or fatal',
  ),
  dataDir: text('DATA_DIR', '.data', 'Where the embedded database and a generated master key live'),
  ...FILE_SETTINGS,
  ...SAFETY_SETTINGS,
  ...STORE_SETTINGS,
  catalogueDir: optional(directory('CATALOGUE_DIR', 'Models and prices; unset: those that ship with the program')),
  lndUrl: createPaymentUrlSetting(
    'LND_REST_URL',
    '/lnd',
    'REST address of an LND node that takes payments over Lightning',
  ),
  lndMacaroon: hex('LND_MACAROON', undefined, 'Its macaroon, in hexadecimal', '00'),
  lndCertificate: optional(file('LND_TLS_CERT', 'File with its TLS certificate, when that is self-signed')),
  btcpayUrl: createPaymentUrlSetting('BTCPAY_URL', '/btcpay', 'Address of a BTCPay Server that takes payments'),
  btcpayStoreId: requiredWithUrl('BTCPAY_URL', 'BTCPAY_STORE_ID', 'Its store'),
  btcpayApiKey: requiredWithUrl(
    'BTCPAY_URL',
    'BTCPAY_API_KEY',
    'Its API key, which may view and create invoices of that store and nothing else',
  ),
  btcpayWebhookSecret: optionalWithUrl(
    'BTCPAY_URL',
    'BTCPAY_WEBHOOK_SECRET',
    'Secret of its web hook to /topup/webhooks/btcpay; unset: none is believed, and payments are found by looking',
  ),
  clnUrl: optional(
    url(
      'CLN_REST_URL',
      ['http:', 'https:'],
      'REST address of a Core Lightning node (clnrest) that takes payments over Lightning',
    ),
  ),
  clnRune: requiredWith(
    'CLN_REST_URL',
    secret('CLN_RUNE', /^[\w=-]+$/, 'a rune', 'Its rune, which allows invoice, listinvoices and waitanyinvoice'),
  ),
  clnCertificate: optional(file('CLN_TLS_CERT', 'File with the certificate that its own is signed with: ca.pem')),
  phoenixdUrl: optional(
    url('PHOENIXD_URL', ['http:', 'https:'], 'Address of a phoenixd that takes payments over Lightning'),
  ),
  phoenixdPassword: requiredWith(
    'PHOENIXD_URL',
    secret('PHOENIXD_PASSWORD', /^[!-~]+$/, 'a password', 'Its HTTP password; that of limited access is enough'),
  ),
  phoenixdWebhookSecret: optional(
    secret(
      'PHOENIXD_WEBHOOK_SECRET',
      /^[!-~]+$/,
      'a secret',
      'Its webhook-secret; unset: no web hook of it is believed, and payments are found by looking',
    ),
  ),
  nwcReceiveUrl: optional(
    secret(
      'NWC_RECEIVE_URL',
      /^nostr\+?walletconnect:\S+$/i,
      'a connection string that starts with nostr+walletconnect://',
      'Connection string (NWC) of a Lightning wallet that takes payments: one that may make and look up invoices is enough',
    ),
  ),
  moneroUrl: optional(
    url('MONERO_WALLET_RPC_URL', ['http:', 'https:'], 'Address of a monero-wallet-rpc that takes payments in Monero'),
  ),
  moneroLogin: optional(
    secret(
      'MONERO_WALLET_RPC_LOGIN',
      /^[^:]+:.+$/,
      'a user and a password with a colon between them',
      'Its --rpc-login, user:password; unset: it asks for none',
    ),
  ),
  stripeKey: createStripeKeySetting(),
  stripeWebhookSecret: optionalWithUrl(
    'STRIPE_SECRET_KEY',
    'STRIPE_WEBHOOK_SECRET',
    'Secret of its web hook to /topup/webhooks/stripe; unset: none is believed, and payments are found by looking',
  ),
  stripeUrl: createStripeUrlSetting(),
  cardMinUsd: integer('CARD_MIN_USD', 5, [1, 999_999], 'Smallest payment by card, in USD'),
  cardMaxUsd: integer('CARD_MAX_USD', 1_000, [1, 999_999], 'Largest payment by card, in USD'),
  topupBackends: pairs(
    'TOPUP_BACKENDS',
    /^[a-z0-9-]+$/,
    'Back ends by payment method, where another is wanted than the first that is configured: btc-lightning=btcpay,xmr=monero',
  ),
  topupConfirmations: pairs(
    'TOPUP_CONFIRMATIONS',
    /^\d{1,3}$/,
    'Confirmations by payment method after which a payment is credited, where others are wanted: btc=3,ltc=6',
  ),
  maxOpenInvoices: integer(
    'MAX_OPEN_INVOICES',
    50,
    [1, 10_000],
    'Top-up invoices that an account may have at a time, paid or not, until they expire: each is a free option on the rate',
  ),
  videoPollsPerSecond: integer(
    'VIDEO_LOOKS_PER_SECOND',
    15,
    [1, 10_000],
    'How often each vendor is asked what has become of videos that it makes; where there are more, each is asked about more rarely',
  ),
  pollsPerSecond: integer(
    'TOPUP_LOOKS_PER_SECOND',
    50,
    [1, 10_000],
    'Requests in a second with which each back end is asked for the payments of open top-ups',
  ),
  unclaimedAfterDays: optional(
    integer(
      'UNCLAIMED_AFTER_DAYS',
      30,
      [8, 36_500],
      'Days after which what was paid for one request and can no longer be used becomes income, by a fact and a line in the log; unset: never, it stays a debt',
    ),
  ),
  autoTopupsPerDay: integer(
    'AUTO_TOPUPS_PER_DAY',
    50,
    [1, 10_000],
    'Automatic top-ups that begin for an account in a day (UTC) at most',
  ),
  autoTopupUsdPerDay: integer(
    'AUTO_TOPUP_USD_PER_DAY',
    1_000,
    [1, 1_000_000],
    'USD that automatic top-ups of an account ask its wallet for in a day (UTC) at most',
  ),
  privateRelays: createPrivateRelaysSetting(
    'PRIVATE_RELAYS',
    'Relays of wallets that may be reached at private addresses, and without TLS: their exact addresses, separated by commas',
  ),
  krakenUrl: createRateSourceSetting('KRAKEN_URL', '/kraken', 'Kraken'),
  coinbaseUrl: createRateSourceSetting('COINBASE_URL', '/coinbase', 'Coinbase'),
  coinGeckoUrl: createRateSourceSetting('COINGECKO_URL', '/coingecko', 'CoinGecko'),
  coinGeckoKey: optional(
    secret('COINGECKO_API_KEY', /^[!-~]+$/, 'a key', 'Key of an account at CoinGecko; unset: it is asked without one'),
  ),
  maxSpreadPercent: integer(
    'RATE_MAX_SPREAD',
    2,
    [1, 50],
    'By how many hundredths the sources of an exchange rate may differ; what they say then is not believed',
  ),
  maxJumpPercent: integer(
    'RATE_MAX_JUMP',
    20,
    [1, 1_000],
    'By how many hundredths a rate may differ from what sources agreed on before, and by as much again after each ten minutes',
  ),
  loneSourceCoins: list(
    'RATE_LONE_SOURCE_COINS',
    (code) => /^[A-Z][A-Z0-9]*$/.test(code),
    'codes of coins such as LTC,XMR',
    'Coins whose rate is also believed when one source alone has it, within RATE_MAX_JUMP of what two agreed on before; unset: none',
  ),
  connectTimeoutMs: integer(
    'UPSTREAM_CONNECT_TIMEOUT_MS',
    5_000,
    [1, 600_000],
    'Longest wait for a connection to an upstream',
  ),
  idleTimeoutMs: integer(
    'UPSTREAM_IDLE_TIMEOUT_MS',
    60_000,
    [1, 3_600_000],
    'Longest silence of an upstream that has begun to generate',
  ),
  totalTimeoutMs: integer('UPSTREAM_TOTAL_TIMEOUT_MS', 600_000, [1, 3_600_000], 'Longest time for a whole answer'),
  firstCommentMs: integer(
    'STREAM_FIRST_COMMENT_MS',
    12_000,
    [1, 3_600_000],
    'How long a stream may wait for the first byte of its upstream before it begins with a comment; what fails until then has a status',
  ),
  refusedPerHour: integer(
    'REFUSED_PROMPTS_PER_HOUR',
    50,
    [1, 1_000_000],
    'Prompts of an account that vendors may refuse in an hour, for each gateway: they cost it nothing, and vendors may invoice them',
  ),
  absorbedPerHour: dollars(
    'ABSORBED_USD_PER_HOUR',
    '1',
    'What the house bears in an hour, at all gateways together, of what requests of one account cost and nobody is charged for; a twentieth of what the account was charged comes on top, and beyond that its requests get 429',
  ),
  drainTimeoutMs: integer(
    'DISCONNECT_DRAIN_MS',
    120_000,
    [0, 3_600_000],
    'How long an answer is read on after its client has gone',
  ),
  heldInFullTokens: integer(
    'HELD_IN_FULL_TOKENS',
    4_096,
    [0, 1_000_000],
    'Limits of output up to this are held for in full; with a larger one, or none, what is held grows with the answer',
  ),
  drainDelayMs: integer(
    'DRAIN_DELAY_MS',
    5_000,
    [0, 600_000],
    'How long a gateway serves on after SIGTERM, saying that it is not ready: as long as balancers take to notice',
  ),
  shutdownTimeoutMs: optional(
    integer(
      'SHUTDOWN_TIMEOUT_MS',
      600_000,
      [0, 3_600_000],
      'How long running requests may take after that; unset: as long as an answer may take (UPSTREAM_TOTAL_TIMEOUT_MS)',
    ),
  ),
  creditIdInference: flag(
    'ALLOW_CREDIT_ID_INFERENCE',
    'true: x-credit-id alone pays for models, past the caps of all keys',
  ),
  maxLagMs: integer(
    'READY_MAX_LAG_MS',
    5_000,
    [1, 3_600_000],
    'Projector lag from which on the gateway shows that the read models are late; it is ready nevertheless',
  ),
  maxClockSkewMs: integer(
    'MAX_CLOCK_SKEW_MS',
    60_000,
    [1_000, 3_600_000],
    "How far this machine's clock may be from the store's, by which everything is decided; beyond it the process is not ready, and no hold is ended for its time",
  ),
} as const;

type CommonSettings = { readonly [Name in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Name]['read']> };

export interface Settings extends CommonSettings {
  /** By the slugs of vendors; those that are missing have no credential here. */
  readonly providers: ReadonlyMap<string, ProviderConnectionSettings>;
}

/** What settings of which each by itself is right must not be together: a sentence for each. */
export type SettingsValidator = (env: Environment, providers: readonly ProviderSettingsSpec[]) => readonly string[];

/**
 * @param readProviderSpecs the vendors of a catalogue's directory, or of the one that is shipped; may throw what is wrong there
 * @throws SettingError with all that is wrong
 */
export function readSettings(
  env: Environment,
  readProviderSpecs: (catalogueDir: string | undefined) => readonly ProviderSettingsSpec[] = () => [],
  validate: SettingsValidator = () => [],
): Settings {
  const issues = new SettingIssues();
  const common = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, setting]) => [name, issues.tryRead(() => setting.read(env))]),
  ) as CommonSettings;
  const providerSpecs = issues.tryRead(() => loadProviderSpecs(common, readProviderSpecs)) ?? [];
  const sandbox = { url: issues.tryRead(() => toSandboxUrl(env)) ?? '', key: SANDBOX_KEY };
  const providers = selectConfiguredProviders(env, providerSpecs, sandbox, issues);
  issues.add(...validate(env, providerSpecs));
  issues.assertNone();
  return { ...common, providers };
}

function loadProviderSpecs(
  { catalogueDir }: CommonSettings,
  readProviderSpecs: (catalogueDir: string | undefined) => readonly ProviderSettingsSpec[],
) {
  try {
    return readProviderSpecs(catalogueDir);
  } catch (error) {
    throw new SettingError(`The catalogue ${(error as Error).message}.`);
  }
}
