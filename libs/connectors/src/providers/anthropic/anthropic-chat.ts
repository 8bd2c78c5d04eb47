import { type ChatCall, type StreamedAnswer, UpstreamFailure, type WholeAnswer } from '#application';
import { Endpoint, messageIn, refusal } from '../../http/endpoint.ts';
import type { Headers } from '../../http/relay.ts';
import type { ChatConnection } from '../chat-upstreams.ts';
import { wholeAnswer } from './answer.ts';
import { MessageEvents } from './message-events.ts';
import { messagesRequest } from './request.ts';
import { SearchEvents } from './search-events.ts';

/** The last version that takes `temperature`, `top_p` and `top_k`, which OpenAI's clients send. */
const VERSION = '2023-06-01';
/** Anthropic's own status for what others answer with 503. */
const OVERLOADED = 529;

export interface AnthropicOptions {
  /** Address without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly connectTimeoutMs: number;
  /** Longest silence between two pieces, and before the first one of a stream. */
  readonly idleTimeoutMs: number;
  /** Output tokens at most where the request names no limit: Anthropic wants one always. */
  readonly defaultMaxTokens: number;
}

/** An upstream that speaks Anthropic's Messages. */
export class AnthropicChat implements ChatConnection {
  private readonly endpoint: Endpoint;
  private readonly defaultMaxTokens: number;

  constructor({ baseUrl, apiKey, defaultMaxTokens, ...timeouts }: AnthropicOptions) {
    const headers = { 'x-api-key': apiKey, 'anthropic-version': VERSION };
    this.endpoint = new Endpoint({ url: `${baseUrl}/v1/messages`, headers, refusalOf, ...timeouts });
    this.defaultMaxTokens = defaultMaxTokens;
  }

  async complete(call: ChatCall): Promise<WholeAnswer | StreamedAnswer> {
    const { body, stream, withoutReasoning, identity, search, signal } = call;
    const request = { ...messagesRequest(body, this.defaultMaxTokens, search), stream };
    if (!stream) {
      const text = await this.endpoint.whole(request, signal);
      return wholeAnswer(text, identity, { withoutReasoning, searched: search !== undefined });
    }
    if (search === undefined)
      return this.endpoint.stream(request, signal, new MessageEvents(identity, withoutReasoning));
    const events = new SearchEvents(identity, withoutReasoning);
    return { ...(await this.endpoint.stream(request, signal, events)), invoicedSearches: () => events.invoiced };
  }

  close(): Promise<void> {
    return this.endpoint.close();
  }
}

function refusalOf(status: number, headers: Headers, text: string): UpstreamFailure {
  if (status === OVERLOADED) {
    const { retryAfterSeconds } = refusal(status, headers, text);
    return new UpstreamFailure('upstream_unavailable', 'The upstream is overloaded; try again later', {
      status,
      retryAfterSeconds,
    });
  }
  // Our own account with Anthropic is empty, which is told as if the request were wrong. It is no affair of the caller.
  if (status === 400 && /credit balance/i.test(messageIn(text) ?? '')) {
    return new UpstreamFailure('upstream_error', 'The upstream does not serve us', { status });
  }
  return refusal(status, headers, text);
}
