/** How much money is held for a request, how long a request waits for it, and what the operator may lose. */
import { dollars, integer } from './setting-types.ts';

export const HOLD_SETTINGS = {
  heldInFullTokens: integer(
    'HELD_IN_FULL_TOKENS',
    4_096,
    [0, 1_000_000],
    'For a chat (not Messages) with an output limit of at most this number of tokens, the price of the complete output is held at the start; otherwise a part, which is extended while the response grows if the provider can stop it',
  ),
  maxWaitingRequests: integer(
    'MAX_WAITING_REQUESTS',
    64,
    [0, 10_000],
    'Maximum number of requests of an account that wait at one gateway for money that running requests of the account hold or need; further ones get 402',
  ),
  maxHoldWaitMs: integer('HOLD_WAIT_MS', 30_000, [0, 600_000], 'How long such a request waits before it gets 402'),
  minExposure: dollars(
    'EXPOSURE_USD',
    '0.02',
    'What providers may bill for the running requests of an account beyond its balance: at least this amount in USD; the larger of this and EXPOSURE_PERCENT applies, at most what ABSORBED_USD_PER_HOUR leaves',
  ),
  exposurePercent: integer(
    'EXPOSURE_PERCENT',
    3,
    [0, 100],
    'The same as a percentage of the balance, but at most ABSORBED_USD_PER_HOUR; for an API key with a spending limit also as a percentage of what the limit leaves',
  ),
  absorbedPerHour: dollars(
    'ABSORBED_USD_PER_HOUR',
    '1',
    'Cost in USD that the operator absorbs per account and hour, on all gateways together, for usage that is not charged; grows by 1/20 of what the account is charged in that hour; beyond it the requests of the account get 429',
  ),
} as const;
