import type { Provider } from '#application';
import { withFixedFields } from '../../http/field-filter.ts';
import { toUpstreamErrorFromResponse } from '../../http/json-http-client.ts';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { ANTHROPIC_HEADERS, AnthropicChat } from './anthropic-chat.ts';
import { messagesFilter } from './field-filter.ts';

/** A provider with Anthropic's Messages API. The base URL does not include `/v1`. */
export function createAnthropicProvider(
  { http, credential }: ProviderClient,
  { keyCheck, bill, always = {} }: Pick<ProviderConfig, 'keyCheck' | 'bill' | 'always'> = {},
) {
  const headers = { ...ANTHROPIC_HEADERS, ...createCredentialHeader('x-api-key', credential) };
  const chat = new AnthropicChat(
    http.createJsonClient('/v1/messages', { headers, fieldFilter: withFixedFields(messagesFilter, always) }),
    bill,
  );
  return {
    chat: (call) => chat.complete(call),
    checkKey: http.createKeyCheck(keyCheck, { headers, mapErrorResponse: toUpstreamErrorFromResponse }),
    close: () => http.close(),
  } satisfies Provider;
}
