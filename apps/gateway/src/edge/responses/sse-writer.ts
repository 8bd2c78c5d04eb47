import type { FastifyReply } from 'fastify';
import { formatSseComment } from '#application';
import { HttpStreamWriter } from './http-stream-writer.ts';

/** An idle stream gets a comment or event after this time, so that proxies do not close the connection. */
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE = formatSseComment('COUNTINGHOUSE PROCESSING');

/** Streams server-sent events to a client. A response that takes long to start begins with `keepAlive`. */
export class SseWriter extends HttpStreamWriter {
  private heartbeatTimer: NodeJS.Timeout | undefined;
  /** The comment or event that is sent while the stream is idle. Clients ignore it. */
  protected readonly keepAlive: string = KEEP_ALIVE;

  constructor(
    reply: FastifyReply,
    private readonly keepAliveMs = KEEP_ALIVE_MS,
  ) {
    super(reply, () => clearInterval(this.heartbeatTimer));
  }

  begin(): void {
    if (!this.hasStarted) this.openEvents();
  }

  startHeartbeat(): void {
    if (this.hasStarted || this.isClosed) return;
    this.openEvents();
    this.response.write(this.keepAlive);
  }

  private openEvents(): void {
    this.open({ 'content-type': 'text/event-stream; charset=utf-8' });
    this.heartbeatTimer = setInterval(
      () => this.isClosed || this.response.write(this.keepAlive),
      this.keepAliveMs,
    ).unref();
    if (this.isClosed) clearInterval(this.heartbeatTimer);
  }

  override write(events: Uint8Array): Promise<void> | undefined {
    this.heartbeatTimer?.refresh();
    return super.write(events);
  }
}
