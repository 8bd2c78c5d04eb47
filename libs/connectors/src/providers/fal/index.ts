import type { Provider } from '#application';
import type { At } from '../provider.ts';
import { FalImages } from './fal-images.ts';
import { FalQueue } from './queue.ts';

/** fal, at the address of its queue. */
export function fal({ http, credential }: At) {
  const queue = new FalQueue(http, credential);
  const images = new FalImages(queue);
  return {
    images: (call) => images.make(call),
    close: () => http.close(),
  } satisfies Provider;
}
