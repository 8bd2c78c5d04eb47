import type { Provider } from '#application';
import type { ProviderClient } from '../provider.ts';
import { AnthropicChat, HEADERS, refusalOf } from './anthropic-chat.ts';
import { allowedMessages } from './field-filter.ts';

/** A vendor that speaks Anthropic's Messages, at an address without `/v1`. */
export function anthropic({ http, credential }: ProviderClient) {
  const headers = { ...HEADERS, 'x-api-key': credential };
  const chat = new AnthropicChat(http.endpoint('/v1/messages', { headers, allowed: allowedMessages, refusalOf }));
  return { chat: (call) => chat.complete(call), close: () => http.close() } satisfies Provider;
}
