/** Settings that bound what costs nothing, on all gateways together. What a balance pays for has no such limits. */
import { integer } from './setting-types.ts';

const MAX_LIMIT = 1_000_000;

export const LIMIT_SETTINGS = {
  accountsPerHour: integer(
    'ACCOUNTS_PER_HOUR',
    1_000,
    [1, MAX_LIMIT],
    'Accounts that may be created from one address (of IPv6 one /64) in an hour; this limit and those below count on all gateways together',
  ),
  invoicesPerHourOfAddress: integer(
    'INVOICES_PER_HOUR_OF_ADDRESS',
    1_000,
    [1, MAX_LIMIT],
    'Invoices for top-ups that may be created, and wallets that may be connected, from one address in an hour',
  ),
  invoicesPerHourOfAccount: integer(
    'INVOICES_PER_HOUR_OF_ACCOUNT',
    200,
    [1, MAX_LIMIT],
    'The same for one account; MAX_OPEN_INVOICES bounds those that are open at a time',
  ),
  invoicesPerHourOfKey: integer(
    'INVOICES_PER_HOUR_OF_KEY',
    100,
    [1, MAX_LIMIT],
    'The same with one API key, so that one that is given away does not keep its account from topping up',
  ),
  changesPerHour: integer(
    'CHANGES_PER_HOUR',
    1_000,
    [1, MAX_LIMIT],
    'Changes of keys and wallets of one account in an hour: each is a fact for ever',
  ),
  invalidCredentialsPerMinute: integer(
    'WRONG_CREDENTIALS_PER_MINUTE',
    600,
    [1, MAX_LIMIT],
    'Credentials from one address in a minute that turn out to be wrong; then it is 429, and what is not known yet waits for its turn',
  ),
  challengesPerMinute: integer(
    'CHALLENGES_PER_MINUTE',
    60,
    [1, MAX_LIMIT],
    'Requests without a credential that one address may make in a minute to what can be paid for by the request',
  ),
  challengesPerMinuteInAll: integer(
    'CHALLENGES_PER_MINUTE_IN_ALL',
    1_200,
    [1, MAX_LIMIT],
    'Payments for single requests that are asked for in a minute at most, of everybody: each is an invoice of the Lightning node',
  ),
  storedBytesPerAccount: integer(
    'STORED_BYTES_PER_ACCOUNT',
    256 * 1024 * 1024,
    [0, 1024 ** 4],
    'Bytes that are stored for an account: Responses (30 days) and answers to requests with an Idempotency-Key (24 hours); of an account that was never credited at most 1 MiB',
  ),
  freePerMinute: integer(
    'FREE_REQUESTS_PER_MINUTE',
    20,
    [0, MAX_LIMIT],
    'Requests of one account to free models in a minute',
  ),
  freePerDay: integer('FREE_REQUESTS_PER_DAY', 200, [0, MAX_LIMIT], 'The same in a day'),
  freePerDayOfAddress: integer(
    'FREE_REQUESTS_PER_DAY_OF_ADDRESS',
    2_000,
    [0, MAX_LIMIT],
    'The same in a day of all accounts that come from one address: accounts are free as well',
  ),
};
