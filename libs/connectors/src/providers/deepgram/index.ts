import type { Provider } from '#application';
import type { ProviderClient } from '../provider.ts';
import { transcribe } from './listen.ts';
import { speak } from './speak.ts';

/** Deepgram's transcription and speech. */
export function createDeepgramProvider({ http, credential }: ProviderClient) {
  const headers = { authorization: `Token ${credential}` };
  return {
    transcription: (call) => transcribe(http, headers, call),
    speech: (call) => speak(http, headers, call),
    close: () => http.close(),
  } satisfies Provider;
}
