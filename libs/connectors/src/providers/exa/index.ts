import type { Provider } from '#application';
import type { At } from '../provider.ts';
import { ExaSearch } from './exa-search.ts';

export function exa({ http, credential }: At) {
  const web = new ExaSearch(http.endpoint('/search', { headers: { 'x-api-key': credential } }));
  return { search: (wish) => web.search(wish), close: () => http.close() } satisfies Provider;
}
