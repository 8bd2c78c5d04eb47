import type { Provider } from '#application';
import type { ProviderClient, ProviderConfig } from '../provider.ts';
import { allowedChat, allowedEmbeddings, allowedResponses } from './field-filter.ts';
import { openAiSpeech, openAiTranscription } from './openai-audio.ts';
import { OpenAiChat } from './openai-chat.ts';
import { OpenAiEmbeddings } from './openai-embeddings.ts';
import { OpenAiImages } from './openai-images.ts';

/** A vendor that speaks OpenAI's protocol, at an address up to and including `/v1`. */
export function openAi({ http, credential }: ProviderClient, { dialect = {} }: Pick<ProviderConfig, 'dialect'>) {
  const headers = { authorization: `Bearer ${credential}` };
  const completions = http.endpoint('/chat/completions', { headers, allowed: allowedChat(dialect) });
  const conversations = http.endpoint('/responses', { headers, allowed: allowedResponses });
  const chat = new OpenAiChat(completions, conversations, dialect);
  const vectors = new OpenAiEmbeddings(http.endpoint('/embeddings', { headers, allowed: allowedEmbeddings }));
  const images = new OpenAiImages(http, headers);
  return {
    chat: (call) => chat.chat(call),
    responses: (call) => chat.responses(call),
    embeddings: (call) => vectors.embed(call),
    images: (call) => images.make(call),
    speech: (call) => openAiSpeech(http, headers, call),
    transcription: (call) => openAiTranscription(http, headers, call),
    close: () => http.close(),
  } satisfies Provider;
}
