/** Limits of operations and storage that are free, on all gateways together. */
import { flag, integer } from './setting-types.ts';

const MAX_LIMIT = 1_000_000;

export const LIMIT_SETTINGS = {
  accountsByOperator: flag(
    'ACCOUNTS_BY_OPERATOR',
    'true: only the operator opens accounts, with "npm run ledger -- accounts create"; unset: anyone may, also over the API',
  ),
  accountsPerHour: integer(
    'ACCOUNTS_PER_HOUR',
    1_000,
    [1, MAX_LIMIT],
    'Maximum number of accounts created per IP address and hour; this limit and the next ones, up to FREE_REQUESTS_PER_DAY_OF_ADDRESS, apply to all gateways together, and count a /64 network of IPv6 as one address',
  ),
  invoicesPerHourOfAddress: integer(
    'INVOICES_PER_HOUR_OF_ADDRESS',
    1_000,
    [1, MAX_LIMIT],
    'Maximum number of top-up invoices and wallet connections created per IP address and hour',
  ),
  invoicesPerHourOfAccount: integer(
    'INVOICES_PER_HOUR_OF_ACCOUNT',
    200,
    [1, MAX_LIMIT],
    'Maximum number of top-up invoices created per account and hour; MAX_OPEN_INVOICES limits the unexpired ones',
  ),
  invoicesPerHourOfKey: integer(
    'INVOICES_PER_HOUR_OF_KEY',
    100,
    [1, MAX_LIMIT],
    'Maximum number of top-up invoices created per API key and hour, so that a shared key cannot use up the limit of its account',
  ),
  changesPerHour: integer(
    'CHANGES_PER_HOUR',
    1_000,
    [1, MAX_LIMIT],
    'Maximum number of changes to API keys and wallets per account and hour, because each change is stored permanently',
  ),
  invalidCredentialsPerMinute: integer(
    'WRONG_CREDENTIALS_PER_MINUTE',
    600,
    [1, MAX_LIMIT],
    'Maximum number of invalid credentials per IP address and minute; beyond it a gateway checks the uncached credentials of all such addresses one at a time, and responds 429 to invalid ones and while 100 checks are waiting',
  ),
  challengesPerMinute: integer(
    'CHALLENGES_PER_MINUTE',
    60,
    [1, MAX_LIMIT],
    'Maximum number of requests to pay-per-request operations with neither the credential of an account nor a valid proof of payment, per IP address and minute',
  ),
  challengesPerMinuteInAll: integer(
    'CHALLENGES_PER_MINUTE_IN_ALL',
    1_200,
    [1, MAX_LIMIT],
    'Maximum number of payment challenges per minute for all callers together; each challenge creates an invoice at the payment backend for Lightning',
  ),
  storedBytesPerAccount: integer(
    'STORED_BYTES_PER_ACCOUNT',
    256 * 1024 * 1024,
    [0, 1024 ** 4],
    'Quota of bytes stored per account: Responses (30 days) and, up to twice the quota, responses to requests with an Idempotency-Key (24 hours); at most 1 MiB for an account that was never credited',
  ),
  freePerMinute: integer(
    'FREE_REQUESTS_PER_MINUTE',
    20,
    [0, MAX_LIMIT],
    'Maximum number of requests to models of the free tier per account and minute',
  ),
  freePerDay: integer(
    'FREE_REQUESTS_PER_DAY',
    200,
    [0, MAX_LIMIT],
    'Maximum number of requests to models of the free tier per account and day',
  ),
  freePerDayOfAddress: integer(
    'FREE_REQUESTS_PER_DAY_OF_ADDRESS',
    2_000,
    [0, MAX_LIMIT],
    'Maximum number of requests to models of the free tier per IP address and day, whatever accounts they use, because creating accounts is free',
  ),
};
