import type { Provider } from '#application';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { toGoogleError } from './errors.ts';
import { GeminiImages } from './gemini-images.ts';
import { VeoVideos } from './veo-videos.ts';

/** Google's Gemini API. The base URL is the part before `/v1beta`. */
export function createGoogleProvider(
  { http, credential }: ProviderClient,
  { keyCheck }: Pick<ProviderConfig, 'keyCheck'> = {},
) {
  const headers = createCredentialHeader('x-goog-api-key', credential);
  const images = new GeminiImages(http, headers);
  return {
    images: (call) => images.generate(call),
    videos: new VeoVideos(http, headers),
    checkKey: http.createKeyCheck(keyCheck, { headers, mapErrorResponse: toGoogleError }),
    close: () => http.close(),
  } satisfies Provider;
}
