import type { Provider } from '#application';
import { lookUps } from '../data/index.ts';
import type { ProviderClient } from '../provider.ts';
import { ExaSearch, SEARCH_REQUEST } from './exa-search.ts';

const CREDENTIAL = 'x-api-key';

export function exa(at: ProviderClient) {
  const { http, credential } = at;
  const headers = { [CREDENTIAL]: credential };
  const web = new ExaSearch(http.endpoint('/search', { headers, allowed: SEARCH_REQUEST }));
  return {
    search: (query) => web.search(query),
    data: lookUps(at, { in: 'header', name: CREDENTIAL }),
    close: () => http.close(),
  } satisfies Provider;
}
