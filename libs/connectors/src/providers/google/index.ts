import type { Provider } from '#application';
import type { At } from '../provider.ts';

/** Google's Gemini API, at the address before `/v1beta`. */
export function google({ http }: At) {
  return {
    close: () => http.close(),
  } satisfies Provider;
}
