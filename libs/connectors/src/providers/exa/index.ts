import type { Provider } from '#application';
import { toDataError } from '../data/error-message.ts';
import { createDataLookup } from '../data/index.ts';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { ExaSearch, searchRequestFilter } from './exa-search.ts';

const CREDENTIAL_HEADER = 'x-api-key';

export function createExaProvider(
  client: ProviderClient,
  { keyCheck, bill }: Pick<ProviderConfig, 'keyCheck' | 'bill'> = {},
) {
  const { http, credential } = client;
  const headers = createCredentialHeader(CREDENTIAL_HEADER, credential);
  const web = new ExaSearch(http.createJsonClient('/search', { headers, fieldFilter: searchRequestFilter }), bill);
  return {
    search: (query) => web.search(query),
    data: createDataLookup(client, { in: 'header', name: CREDENTIAL_HEADER }, bill),
    checkKey: http.createKeyCheck(keyCheck, { headers, mapErrorResponse: toDataError }),
    close: () => http.close(),
  } satisfies Provider;
}
