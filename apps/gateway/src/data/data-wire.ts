/** The list of data lookups with their current prices. */
import { type Catalogue, DATA_PROVIDERS, type DataEndpoint, toDataPath } from '#catalogue';
import { calculateMaxPrice } from '#domain';
import { toUsdJsonNumber } from '#kernel';

/** Returns all lookups, grouped by category. @param acceptsChallenges whether anonymous callers can pay per request */
export function toDataEndpointList(catalogue: Catalogue, acceptsChallenges: boolean) {
  const rank = ({ provider }: DataEndpoint) => DATA_PROVIDERS.indexOf(provider);
  return catalogue.dataEndpoints
    .toSorted((a, b) => rank(a) - rank(b))
    .map((dataEndpoint) => toDataEndpointJson(dataEndpoint, acceptsChallenges));
}

function toDataEndpointJson({ endpoint, ...entry }: DataEndpoint, acceptsChallenges: boolean) {
  const { provider, action, method, name, description, parameters = null, caps = {}, charged, results } = entry;
  return {
    path: `/v1${toDataPath(entry)}`,
    method,
    provider,
    action,
    name,
    description,
    price_usd: toUsdJsonNumber(calculateMaxPrice({ lookup: 1 }, endpoint.tariff.prices)),
    payment_methods: acceptsChallenges ? ['balance', 'l402'] : ['balance'],
    free_if_empty: results !== undefined && !charged.empty,
    limits: Object.fromEntries(Object.entries(caps).map(([field, { max }]) => [field, max])),
    parameters,
    example: entry.example,
  };
}
