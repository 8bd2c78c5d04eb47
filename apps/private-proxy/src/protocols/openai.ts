/**
 * OpenAI's protocol: sends a chat to the enclave unchanged, except that the chat names the enclave's model and always
 * requests a stream with usage. In a stream, the enclave's events are forwarded, except a usage chunk that was not
 * requested. Otherwise the events are collected into one completion.
 */

import { formatSseEvent } from '#application/messages';
import { isJsonObject, type JsonObject } from '#kernel';
import { type CompletionEvent, collectCompletion, parseEvents } from '../completion-events.ts';
import type { TranslatedExchange } from '../exchanges.ts';
import type { ResolvedPrivateModel } from '../private-model-resolver.ts';
import { ProxyError } from '../proxy-error.ts';
import type { ClientProtocol } from './client-protocol.ts';

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_balance',
  403: 'permission_error',
  429: 'rate_limit_error',
};

function formatError({ status, message, type, code, param, money: metadata }: ProxyError) {
  const byStatus = ERROR_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'proxy_error');
  return { error: { message, type: type ?? byStatus, param, code, ...(metadata ? { metadata } : {}) } };
}

export const OPENAI_PROTOCOL: ClientProtocol = {
  name: 'openai',
  idHeaders: ['x-request-id'],
  formatError,
  formatErrorEvent: (failure) => formatSseEvent(JSON.stringify(formatError(failure))),
  closesIncompleteStreams: true,
  keepAlive: ': waiting\n\n',
};

/** @throws ProxyError that names the invalid field */
export function createChatExchange(body: JsonObject, { id: model }: ResolvedPrivateModel): TranslatedExchange {
  const { messages, stream, stream_options } = body;
  if (!Array.isArray(messages)) throw new ProxyError(400, 'messages must be an array', { param: 'messages' });
  if (typeof (stream ?? false) !== 'boolean')
    throw new ProxyError(400, 'stream must be a boolean', { param: 'stream' });
  const options = isJsonObject(stream_options) ? stream_options : {};
  const isForwarded = options.include_usage === true ? () => true : isNotUsageOnly;
  return {
    isStreaming: stream === true,
    chat: { ...body, model, stream: true, stream_options: { ...options, include_usage: true } },
    collect: async ({ plaintext }) => JSON.stringify(await collectCompletion(plaintext)),
    async *streamEvents({ plaintext }) {
      for await (const events of parseEvents(plaintext)) {
        const forwarded = events.filter(isForwarded).map(({ text }) => `${text}\n\n`);
        if (forwarded.length > 0) yield forwarded.join('');
      }
    },
  };
}

/** Returns false for a chunk with only usage: clients that did not request usage may expect a choice in every chunk. */
function isNotUsageOnly({ chunk }: CompletionEvent): boolean {
  return !(chunk && isJsonObject(chunk.usage) && Array.isArray(chunk.choices) && chunk.choices.length === 0);
}
