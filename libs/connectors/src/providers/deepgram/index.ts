import type { Provider } from '#application';
import type { ProviderClient } from '../provider.ts';
import { listen } from './listen.ts';
import { speak } from './speak.ts';

/** Speech in both directions. */
export function deepgram({ http, credential }: ProviderClient) {
  const headers = { authorization: `Token ${credential}` };
  return {
    transcription: (call) => listen(http, headers, call),
    speech: (call) => speak(http, headers, call),
    close: () => http.close(),
  } satisfies Provider;
}
