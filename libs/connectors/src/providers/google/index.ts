import type { Provider } from '#application';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { toGoogleError } from './errors.ts';
import { GeminiChat } from './gemini-chat.ts';
import { GeminiImages } from './gemini-images.ts';
import { VeoVideos } from './veo-videos.ts';

/** Google's Gemini API. The base URL is the part before `/v1beta`. */
export function createGoogleProvider(
  { http, credential }: ProviderClient,
  { keyCheck, modelList, bill, always }: Pick<ProviderConfig, 'keyCheck' | 'modelList' | 'bill' | 'always'> = {},
) {
  const headers = createCredentialHeader('x-goog-api-key', credential);
  const freeCall = { headers, mapErrorResponse: toGoogleError };
  const chat = new GeminiChat(http, headers, { bill, always });
  const images = new GeminiImages(http, headers);
  return {
    chat: (call) => chat.complete(call),
    images: (call) => images.generate(call),
    videos: new VeoVideos(http, headers),
    checkKey: http.createKeyCheck(keyCheck, freeCall),
    listModels: http.createModelListReader(modelList?.path, freeCall),
    close: () => http.close(),
  } satisfies Provider;
}
