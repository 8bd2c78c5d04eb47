import type { Provider } from '#application';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { ANTHROPIC_HEADERS, AnthropicChat, toAnthropicError } from './anthropic-chat.ts';
import { messagesFilter } from './field-filter.ts';

/** A provider with Anthropic's Messages API. The base URL does not include `/v1`. */
export function createAnthropicProvider(
  { http, credential }: ProviderClient,
  { keyCheck }: Pick<ProviderConfig, 'keyCheck'> = {},
) {
  const headers = { ...ANTHROPIC_HEADERS, ...createCredentialHeader('x-api-key', credential) };
  const chat = new AnthropicChat(
    http.createJsonClient('/v1/messages', { headers, fieldFilter: messagesFilter, mapErrorResponse: toAnthropicError }),
  );
  return {
    chat: (call) => chat.complete(call),
    checkKey: http.createKeyCheck(keyCheck, { headers, mapErrorResponse: toAnthropicError }),
    close: () => http.close(),
  } satisfies Provider;
}
