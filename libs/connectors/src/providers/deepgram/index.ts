import type { Provider } from '#application';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { toKeyCheckError } from './errors.ts';
import { transcribe } from './listen.ts';
import { speak } from './speak.ts';

/** Deepgram's transcription and speech. */
export function createDeepgramProvider(
  { http, credential }: ProviderClient,
  { keyCheck }: Pick<ProviderConfig, 'keyCheck'> = {},
) {
  const headers = createCredentialHeader('authorization', credential, 'Token ');
  return {
    transcription: (call) => transcribe(http, headers, call),
    speech: (call) => speak(http, headers, call),
    checkKey: http.createKeyCheck(keyCheck, { headers, mapErrorResponse: toKeyCheckError }),
    close: () => http.close(),
  } satisfies Provider;
}
