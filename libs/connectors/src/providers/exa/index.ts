import type { Provider } from '#application';
import type { At } from '../provider.ts';
import { ExaSearch, SEARCH_REQUEST } from './exa-search.ts';

export function exa({ http, credential }: At) {
  const headers = { 'x-api-key': credential };
  const web = new ExaSearch(http.endpoint('/search', { headers, allowed: SEARCH_REQUEST }));
  return { search: (query) => web.search(query), close: () => http.close() } satisfies Provider;
}
