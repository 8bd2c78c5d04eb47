import type { AnswerClient, EventOutlet, Receipt, ResponseError, Source } from '#application';
import { answerTo, UNEXPECTED } from '../edge/errors.ts';
import { SseClient } from '../edge/sse.ts';
import { endOfStream } from './chat-wire.ts';

/** OpenAI's codes for a response that failed, by OpenRouter's word for the error. */
const ERROR_CODES: Readonly<Record<string, string>> = {
  rate_limit_exceeded: 'rate_limit_exceeded',
  invalid_request: 'invalid_prompt',
};

/** A client of a chat. Once events have been sent, an error can only be another event. */
export class ChatStream extends SseClient implements AnswerClient {
  private model = '';

  override begin(source?: Source): void {
    this.model = source?.model ?? '';
    super.begin();
  }

  end(receipt: Receipt | undefined, failure?: unknown): void {
    this.finish(endOfStream({ id: `gen-${this.requestId}`, model: this.model }, receipt, failure));
  }
}

/** A client of a response. */
export class ResponseStream extends SseClient implements EventOutlet {
  explain(error: unknown): ResponseError {
    const { message, kind } = answerTo(error) ?? UNEXPECTED;
    return { code: ERROR_CODES[kind] ?? 'server_error', message };
  }
}
