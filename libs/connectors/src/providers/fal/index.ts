import type { Provider } from '#application';
import type { At } from '../provider.ts';

/** fal, at the address of its queue. */
export function fal({ http }: At) {
  return {
    close: () => http.close(),
  } satisfies Provider;
}
