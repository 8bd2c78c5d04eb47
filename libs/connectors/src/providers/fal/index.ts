import type { Provider } from '#application';
import type { ProviderClient, ProviderConfig } from '../provider.ts';
import { FalImages } from './fal-images.ts';
import { FalVideos } from './fal-videos.ts';
import { FalQueue } from './queue.ts';
import { FalWebhookVerifier } from './webhooks.ts';

const KEYS = '/.well-known/jwks.json';
/** Where fal publishes what its web hooks are signed with; anybody else's queue has its keys below itself. */
const FALS_KEYS = `https://rest.fal.ai${KEYS}`;

/** fal, at the address of its queue. */
export function fal({ http, credential }: ProviderClient, vendor: ProviderConfig) {
  const queue = new FalQueue(http, credential);
  const images = new FalImages(queue);
  const keysUrl = http.baseUrl === vendor.baseUrl ? FALS_KEYS : `${http.baseUrl}${KEYS}`;
  return {
    images: (call) => images.make(call),
    videos: new FalVideos(queue, new FalWebhookVerifier(keysUrl)),
    close: () => http.close(),
  } satisfies Provider;
}
