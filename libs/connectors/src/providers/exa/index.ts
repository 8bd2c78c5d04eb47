import type { Provider } from '#application';
import { createDataLookup } from '../data/index.ts';
import type { ProviderClient } from '../provider.ts';
import { ExaSearch, searchRequestFilter } from './exa-search.ts';

const CREDENTIAL_HEADER = 'x-api-key';

export function createExaProvider(client: ProviderClient) {
  const { http, credential } = client;
  const headers = { [CREDENTIAL_HEADER]: credential };
  const web = new ExaSearch(http.createJsonClient('/search', { headers, fieldFilter: searchRequestFilter }));
  return {
    search: (query) => web.search(query),
    data: createDataLookup(client, { in: 'header', name: CREDENTIAL_HEADER }),
    close: () => http.close(),
  } satisfies Provider;
}
