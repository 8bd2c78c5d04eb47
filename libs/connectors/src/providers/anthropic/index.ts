import type { Provider } from '#application';
import { withFixedFields } from '../../http/field-filter.ts';
import { toUpstreamErrorFromResponse } from '../../http/json-http-client.ts';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { ANTHROPIC_HEADERS, AnthropicChat } from './anthropic-chat.ts';
import { createMessagesFilter } from './field-filter.ts';

/** A provider with Anthropic's Messages API. The base URL does not include `/v1`. */
export function createAnthropicProvider(
  { http, credential }: ProviderClient,
  { keyCheck, modelList, bill, always = {} }: Pick<ProviderConfig, 'keyCheck' | 'modelList' | 'bill' | 'always'> = {},
) {
  const headers = { ...ANTHROPIC_HEADERS, ...createCredentialHeader('x-api-key', credential) };
  const createClient = (betas: readonly string[], cachesForHour: boolean) =>
    http.createJsonClient('/v1/messages', {
      headers: { ...headers, ...(betas.length > 0 ? { 'anthropic-beta': betas.join(',') } : {}) },
      fieldFilter: withFixedFields(createMessagesFilter(cachesForHour), always),
    });
  const chat = new AnthropicChat(createClient, bill);
  const freeCall = { headers, mapErrorResponse: toUpstreamErrorFromResponse };
  return {
    chat: (call) => chat.complete(call),
    checkKey: http.createKeyCheck(keyCheck, freeCall),
    listModels: http.createModelListReader(modelList?.path, freeCall),
    close: () => http.close(),
  } satisfies Provider;
}
