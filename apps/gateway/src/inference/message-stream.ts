import { formatSseEvent, type MessageEventOutput } from '#application';
import { shapeFor } from '../edge/errors/error-formats.ts';
import { answerTo, UNEXPECTED } from '../edge/errors/errors.ts';
import { SseClient } from '../edge/responses/sse.ts';

const PING = formatSseEvent(JSON.stringify({ type: 'ping' }), 'ping');

/** A client of a message. */
export class MessageStream extends SseClient implements MessageEventOutput {
  protected override readonly keepAlive = PING;

  explain(error: unknown) {
    return { type: 'error', ...shapeFor(this.request).inEvent(answerTo(error) ?? UNEXPECTED, this.requestId) };
  }
}
