import type { Provider } from '#application';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { FalImages } from './fal-images.ts';
import { FalVideos } from './fal-videos.ts';
import { FalQueue } from './queue.ts';
import { FalWebhookVerifier } from './webhooks.ts';

const KEYS_PATH = '/.well-known/jwks.json';
/** fal's keys for webhook signatures. With a base URL other than the catalogue's, the keys are below that URL. */
const FAL_KEYS_URL = `https://rest.fal.ai${KEYS_PATH}`;

/** fal. The base URL is that of its queue. */
export function createFalProvider({ http, credential }: ProviderClient, config: ProviderConfig) {
  const queue = new FalQueue(http, createCredentialHeader('authorization', credential, 'Key '));
  const images = new FalImages(queue);
  const keysUrl = http.baseUrl === config.baseUrl ? FAL_KEYS_URL : `${http.baseUrl}${KEYS_PATH}`;
  return {
    images: (call) => images.generate(call),
    videos: new FalVideos(queue, new FalWebhookVerifier(keysUrl)),
    close: () => http.close(),
  } satisfies Provider;
}
