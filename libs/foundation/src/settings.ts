/**
 * All settings are environment variables that are read once, at the start. An invalid setting stops the start with a
 * sentence that names it. `npm run docs` generates the table in docs/settings.md from this list.
 */

import { z } from 'zod';
import { BACKUP_SETTINGS } from './backup-settings.ts';
import {
  createPaymentUrlSetting,
  createPrivateRelaysSetting,
  createRateSourceSetting,
  createStripeKeySetting,
  createStripeUrlSetting,
  optionalWithUrl,
  requiredWith,
  requiredWithUrl,
  SANDBOX_SETTINGS,
} from './external-service-settings.ts';
import { FILE_SETTINGS } from './file-settings.ts';
import { HOLD_SETTINGS } from './hold-settings.ts';
import { LIMIT_SETTINGS } from './limit-settings.ts';
import { NETWORK_SETTINGS } from './network-settings.ts';
import type { ProviderConnectionSettings } from './provider-settings.ts';
import {
  allowFile,
  certificates,
  choice,
  date,
  directory,
  flag,
  hex,
  integer,
  list,
  optional,
  pairs,
  type SettingValues,
  secret,
  text,
  url,
} from './setting-types.ts';
import type { Simulation } from './simulation.ts';
import { STORE_SETTINGS } from './store-settings.ts';
import { SAFETY_SETTINGS } from './unsafe-settings.ts';

export const SETTINGS = {
  port: integer('PORT', 3000, [0, 65_535], 'Port of the API'),
  host: text('HOST', '127.0.0.1', 'Address on which the API, the health routes and the sandbox listen'),
  audioPort: optional(
    integer(
      'AUDIO_PORT',
      0,
      [0, 65_535],
      'Additional port for the paths below /api/v1/audio, which PORT serves as well; unset: no additional port',
    ),
  ),
  healthPort: optional(
    integer(
      'HEALTH_PORT',
      0,
      [0, 65_535],
      'Port on which a projector, sagas or backup process serves /health/live and /health/ready; unset: they are not served',
    ),
  ),
  sandboxPort: SANDBOX_SETTINGS.port,
  sandboxUrl: SANDBOX_SETTINGS.url,
  publicBaseUrl: optional(url('PUBLIC_BASE_URL', 'Address of the API for clients and webhooks')),
  ...NETWORK_SETTINGS,
  ...LIMIT_SETTINGS,
  logLevel: choice(
    'LOG_LEVEL',
    ['info', 'trace', 'debug', 'warn', 'error', 'fatal'],
    'Minimum level of log lines: trace, debug, info, warn, error or fatal',
  ),
  dataDir: text('DATA_DIR', '.data', 'Directory of the embedded database and of a generated master key'),
  ...FILE_SETTINGS,
  ...SAFETY_SETTINGS,
  ...STORE_SETTINGS,
  ...BACKUP_SETTINGS,
  catalogueDir: optional(directory('CATALOGUE_DIR', 'Directory of models and prices; unset: the shipped catalogue')),
  catalogueDay: optional(
    date(
      'CATALOGUE_DAY',
      'UTC day, such as 2027-02-01, that decides which models have retired, to try out a day with the sandbox; not allowed with a real service; unset: today',
    ),
  ),
  lndUrl: createPaymentUrlSetting(
    'LND_REST_URL',
    '/lnd',
    'REST address of an LND node that receives Lightning payments',
  ),
  lndMacaroon: hex('LND_MACAROON', '00', 'Macaroon of the LND node, in hexadecimal'),
  lndCertificates: optional(
    certificates(
      'LND_TLS_CERT',
      'File with the TLS certificate of the LND node, if it is self-signed, or with several',
    ),
  ),
  btcpayUrl: createPaymentUrlSetting('BTCPAY_URL', '/btcpay', 'Address of a BTCPay Server that receives payments'),
  btcpayStoreId: requiredWithUrl('BTCPAY_URL', 'BTCPAY_STORE_ID', 'Id of the BTCPay store; required with BTCPAY_URL'),
  btcpayApiKey: allowFile(
    requiredWithUrl(
      'BTCPAY_URL',
      'BTCPAY_API_KEY',
      'API key for BTCPay, which needs only the permissions to view and create invoices of the store; required with BTCPAY_URL',
    ),
  ),
  btcpayWebhookSecret: allowFile(
    optionalWithUrl(
      'BTCPAY_URL',
      'BTCPAY_WEBHOOK_SECRET',
      'Secret of the BTCPay webhook to /topup/webhooks/btcpay; no default if BTCPAY_URL is set; without a secret, webhooks are rejected, and payments are found by polling',
    ),
  ),
  clnUrl: optional(
    url('CLN_REST_URL', 'REST address of a Core Lightning node (clnrest) that receives Lightning payments'),
  ),
  clnRune: requiredWith(
    'CLN_REST_URL',
    secret('CLN_RUNE', /^[\w=-]+$/, 'a rune', 'Rune of the node; must allow invoice, listinvoices and waitanyinvoice'),
  ),
  clnCertificates: optional(
    certificates('CLN_TLS_CERT', 'File with the CA certificate of the Core Lightning node (ca.pem), or with several'),
  ),
  phoenixdUrl: optional(url('PHOENIXD_URL', 'Address of a phoenixd that receives Lightning payments')),
  phoenixdPassword: requiredWith(
    'PHOENIXD_URL',
    secret('PHOENIXD_PASSWORD', /^[!-~]+$/, 'a password', 'HTTP password of phoenixd; limited access is sufficient'),
  ),
  phoenixdWebhookSecret: optional(
    secret(
      'PHOENIXD_WEBHOOK_SECRET',
      /^[!-~]+$/,
      'a secret',
      'Value of webhook-secret in the configuration of phoenixd; unset: webhooks are rejected, and payments are found by polling',
    ),
  ),
  nwcReceiveUrl: optional(
    secret(
      'NWC_RECEIVE_URL',
      /^nostr\+?walletconnect:\S+$/i,
      'a connection string that starts with nostr+walletconnect://',
      'Connection string (NWC) of a Lightning wallet that receives payments; it needs only make_invoice and lookup_invoice',
    ),
  ),
  moneroUrl: optional(url('MONERO_WALLET_RPC_URL', 'Address of a monero-wallet-rpc that receives Monero payments')),
  moneroLogin: optional(
    secret(
      'MONERO_WALLET_RPC_LOGIN',
      /^[^:]+:.+$/,
      'a user and a password with a colon between them',
      'Value of the option --rpc-login of monero-wallet-rpc, as user:password; unset: no login',
    ),
  ),
  stripeKey: createStripeKeySetting(),
  stripeWebhookSecret: allowFile(
    optionalWithUrl(
      'STRIPE_SECRET_KEY',
      'STRIPE_WEBHOOK_SECRET',
      'Secret of the Stripe webhook to /topup/webhooks/stripe; no default if STRIPE_SECRET_KEY is set; without a secret, webhooks are rejected, and payments are found by polling',
    ),
  ),
  stripeUrl: createStripeUrlSetting(),
  cardMinUsd: integer('CARD_MIN_USD', 5, [1, 999_999], 'Minimum card payment in USD'),
  cardMaxUsd: integer('CARD_MAX_USD', 1_000, [1, 999_999], 'Maximum card payment in USD'),
  topupBackends: pairs(
    'TOPUP_BACKENDS',
    /^[a-z0-9-]+$/,
    'Payment backend by payment method, such as btc-lightning=btcpay,xmr=monero; other methods use the first configured backend of their list in payments.json',
  ),
  topupConfirmations: pairs(
    'TOPUP_CONFIRMATIONS',
    /^\d{1,3}$/,
    'Number of confirmations by payment method after which a payment is credited, such as btc=3,ltc=6; other methods use the numbers in payments.json',
  ),
  maxOpenInvoices: integer(
    'MAX_OPEN_INVOICES',
    50,
    [1, 10_000],
    'Maximum number of unexpired top-up invoices of an account, paid or not; each one fixes an exchange rate for free',
  ),
  videoPollsPerSecond: integer(
    'VIDEO_LOOKS_PER_SECOND',
    15,
    [1, 10_000],
    'Maximum average of requests per second to each provider for the state of videos, not counting those after a webhook, a failure or a deadline; beyond it each video is polled less often',
  ),
  pollsPerSecond: integer(
    'TOPUP_LOOKS_PER_SECOND',
    50,
    [1, 10_000],
    'Maximum average of requests per second to each payment backend for open top-ups; the same limit applies separately to payment challenges',
  ),
  unclaimedAfterDays: optional(
    integer(
      'UNCLAIMED_AFTER_DAYS',
      30,
      [8, 36_500],
      'Days after a payment challenge has become unusable, or after the day that follows its payment if that ends later, until its remaining amount is booked as income, with an event and a log line; unset: it stays a liability',
    ),
  ),
  autoTopupsPerDay: integer(
    'AUTO_TOPUPS_PER_DAY',
    50,
    [1, 10_000],
    'Maximum number of automatic top-ups of an account per day (UTC)',
  ),
  autoTopupUsdPerDay: integer(
    'AUTO_TOPUP_USD_PER_DAY',
    1_000,
    [1, 1_000_000],
    'Maximum amount in USD that automatic top-ups request from the wallet of an account per day (UTC)',
  ),
  privateRelays: createPrivateRelaysSetting(
    'PRIVATE_RELAYS',
    'Exact addresses of wallet relays that may be private and without TLS, separated by commas',
  ),
  krakenUrl: createRateSourceSetting('KRAKEN_URL', '/kraken', 'Kraken'),
  coinbaseUrl: createRateSourceSetting('COINBASE_URL', '/coinbase', 'Coinbase'),
  coinGeckoUrl: createRateSourceSetting('COINGECKO_URL', '/coingecko', 'CoinGecko'),
  coinGeckoKey: optional(
    secret('COINGECKO_API_KEY', /^[!-~]+$/, 'a key', 'API key of a CoinGecko account; unset: requests without a key'),
  ),
  maxSpreadPercent: integer(
    'RATE_MAX_SPREAD',
    2,
    [1, 50],
    'Maximum difference in percent between the quote of a source and the middle one of all quotes; a quote beyond it is ignored, and the rate is not used if fewer than two remain',
  ),
  maxJumpPercent: integer(
    'RATE_MAX_JUMP',
    20,
    [1, 1_000],
    'Maximum difference in percent between a rate and earlier rates on which sources agreed: the last one, and those of the hour before it; grows by this value for every ten minutes since the earlier rate',
  ),
  loneSourceCoins: list(
    'RATE_LONE_SOURCE_COINS',
    z.string().regex(/^[A-Z][A-Z0-9]*$/),
    'codes of coins such as LTC,XMR',
    'Codes of coins, separated by commas, whose rate is also accepted from a single source if it is within RATE_MAX_JUMP of the last rate on which sources agreed; unset: none',
  ),
  zdrAgreements: list(
    'ZDR_AGREEMENTS',
    z.string().regex(/^[a-z0-9-]+$/),
    'slugs of providers, such as exa',
    "Slugs of providers, separated by commas, that have agreed to retain no data of the operator's account, such as exa for the web searches of requests with zdr; unset: none",
  ),
  connectTimeoutMs: integer(
    'UPSTREAM_CONNECT_TIMEOUT_MS',
    5_000,
    [1, 600_000],
    'Maximum time to connect to a provider',
  ),
  idleTimeoutMs: integer(
    'UPSTREAM_IDLE_TIMEOUT_MS',
    60_000,
    [1, 3_600_000],
    'Maximum time without data from a provider that has started to generate',
  ),
  totalTimeoutMs: integer('UPSTREAM_TOTAL_TIMEOUT_MS', 600_000, [1, 3_600_000], 'Maximum time for a complete response'),
  firstCommentMs: integer(
    'STREAM_FIRST_COMMENT_MS',
    12_000,
    [1, 3_600_000],
    'How long a streamed chat waits for the first output before the gateway starts the response with a comment; a failure before that gets its own HTTP status',
  ),
  refusedPerHour: integer(
    'REFUSED_PROMPTS_PER_HOUR',
    50,
    [1, 1_000_000],
    'Number of prompts of one account that providers reject per hour until further requests get 429, separately for images (each gateway counts its own) and for videos (all gateways together), because providers may invoice rejected prompts, which are not charged',
  ),
  ...HOLD_SETTINGS,
  drainTimeoutMs: integer(
    'DISCONNECT_DRAIN_MS',
    120_000,
    [0, 3_600_000],
    'Maximum time for which a response is still read after its client has disconnected; reading ends earlier if that saves cost',
  ),
  drainDelayMs: integer(
    'DRAIN_DELAY_MS',
    5_000,
    [0, 600_000],
    'How long a gateway still accepts requests after SIGTERM while it reports that it is not ready; must be at least the time in which load balancers notice this',
  ),
  shutdownTimeoutMs: optional(
    integer(
      'SHUTDOWN_TIMEOUT_MS',
      600_000,
      [0, 3_600_000],
      'Maximum time for running requests after DRAIN_DELAY_MS; unset: UPSTREAM_TOTAL_TIMEOUT_MS',
    ),
  ),
  startTimeoutMs: integer(
    'START_TIMEOUT_MS',
    120_000,
    [0, 3_600_000],
    'How long the start of a process waits in all for what is late, such as a database that is starting; every 5 s it logs for what',
  ),
  creditIdInference: flag(
    'ALLOW_CREDIT_ID_INFERENCE',
    'true: x-credit-id without an API key pays for models, and the limits of API keys do not apply',
  ),
  maxLagMs: integer(
    'READY_MAX_LAG_MS',
    5_000,
    [1, 3_600_000],
    'Maximum lag of the read models; beyond it, /health/ready of gateways and projectors reports the lag as not ok, but the process stays ready',
  ),
  maxClockSkewMs: integer(
    'MAX_CLOCK_SKEW_MS',
    60_000,
    [1_000, 3_600_000],
    'Maximum difference between the clock of this host and that of the database, which determines all times; beyond it the process is not ready and lets no hold expire',
  ),
} as const;

export type CommonSettings = SettingValues<typeof SETTINGS>;

export interface Settings extends CommonSettings {
  /** By the slugs of providers. Providers that are neither configured nor simulated are missing. */
  readonly providers: ReadonlyMap<string, ProviderConnectionSettings>;
  readonly simulation: Simulation;
}
