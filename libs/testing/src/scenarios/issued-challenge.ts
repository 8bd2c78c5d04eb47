import { type ChallengeIssued, convertToUnits, convertToUsd } from '#domain';
import { type PicoUsd, parseUsd } from '#kernel';

const AT = '2026-11-22T12:00:00.000Z';
/** Bitcoin over Lightning, in millisatoshis. */
const BTC = { code: 'BTC', name: 'Bitcoin', decimals: 11, step: 1_000, currencies: {} } as const;
const RATE = '85000.00';

/** Creates a challenge for a web search at this price, with a rate of 85,000 USD per bitcoin. */
export function createIssuedChallenge(
  overrides: Partial<ChallengeIssued['data']> = {},
  price: PicoUsd = parseUsd('0.0115'),
): ChallengeIssued['data'] {
  const units = convertToUnits(price, BTC, RATE);
  return {
    id: 'id',
    price: price.toString(),
    priceList: 'v1',
    request: 'digest',
    method: 'btc-lightning',
    query: { model: 'web/search', type: 'data_enrichment', source: 'api', online: false, free: false },
    coin: BTC.code,
    units: units.toString(),
    worth: convertToUsd(units, BTC, RATE).toString(),
    rate: { value: RATE, source: 'kraken', at: AT },
    backend: 'lnd',
    reference: 'ab',
    paymentHash: 'ab',
    expiresAt: '2026-11-22T12:05:00.000Z',
    usableUntil: '2026-11-23T12:05:00.000Z',
    at: AT,
    ...overrides,
  };
}
