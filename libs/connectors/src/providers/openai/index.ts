import type { Provider } from '#application';
import { withFixedFields } from '../../http/field-filter.ts';
import { toUpstreamErrorFromResponse } from '../../http/json-http-client.ts';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { createChatFilter, embeddingsFilter, responsesFilter } from './field-filter.ts';
import { synthesizeSpeech, transcribe } from './openai-audio.ts';
import { OpenAiChat } from './openai-chat.ts';
import { OpenAiEmbeddings } from './openai-embeddings.ts';
import { OpenAiImages } from './openai-images.ts';
import { withRouterSearch } from './router-search.ts';

/** A provider with OpenAI's protocol. The base URL includes `/v1`. */
export function createOpenAiProvider(
  { http, credential }: ProviderClient,
  {
    dialect = {},
    keyCheck,
    modelList,
    bill = {},
    always = {},
  }: Pick<ProviderConfig, 'dialect' | 'keyCheck' | 'modelList' | 'bill' | 'always'>,
) {
  const headers = createCredentialHeader('authorization', credential, 'Bearer ');
  const completionsClient = http.createJsonClient('/chat/completions', {
    headers,
    fieldFilter: withFixedFields(withRouterSearch(createChatFilter(dialect)), always),
  });
  const responsesClient = http.createJsonClient('/responses', {
    headers,
    fieldFilter: withFixedFields(responsesFilter, always),
  });
  const chat = new OpenAiChat(completionsClient, responsesClient, dialect, bill);
  const vectors = new OpenAiEmbeddings(
    http.createJsonClient('/embeddings', { headers, fieldFilter: embeddingsFilter }),
    bill,
  );
  const images = new OpenAiImages(http, headers);
  const freeCall = { headers, mapErrorResponse: toUpstreamErrorFromResponse };
  return {
    chat: (call) => chat.chat(call),
    responses: (call) => chat.responses(call),
    embeddings: (call) => vectors.embed(call),
    images: (call) => images.generate(call),
    speech: (call) => synthesizeSpeech(http, headers, call),
    transcription: (call) => transcribe(http, headers, call),
    checkKey: http.createKeyCheck(keyCheck, freeCall),
    listModels: http.createModelListReader(modelList?.path, freeCall),
    close: () => http.close(),
  } satisfies Provider;
}
