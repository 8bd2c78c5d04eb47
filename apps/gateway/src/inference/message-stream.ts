import { formatSseEvent, type MessageEventOutput } from '#application';
import { selectErrorFormat } from '../edge/errors/error-formats.ts';
import { INTERNAL_ERROR, toErrorResponse } from '../edge/errors/errors.ts';
import { SseWriter } from '../edge/responses/sse-writer.ts';

const PING = formatSseEvent(JSON.stringify({ type: 'ping' }), 'ping');

/** Writes a streamed message of Anthropic's API. */
export class MessageStreamWriter extends SseWriter implements MessageEventOutput {
  protected override readonly keepAlive = PING;

  toErrorEvent(error: unknown) {
    return {
      type: 'error',
      ...selectErrorFormat(this.request).createEvent(toErrorResponse(error) ?? INTERNAL_ERROR, this.requestId),
    };
  }
}
