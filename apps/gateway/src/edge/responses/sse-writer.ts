import type { FastifyReply } from 'fastify';
import { formatSseComment } from '#application';
import { HttpStreamWriter } from './http-stream-writer.ts';

/** A stream that is silent for longer gets a comment, so that no proxy between takes it for dead. */
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE = formatSseComment('COUNTINGHOUSE PROCESSING');

/** A client that receives server-sent events. What has waited for too long begins with a comment. */
export class SseWriter extends HttpStreamWriter {
  private heartbeatTimer: NodeJS.Timeout | undefined;
  /** An event that says nothing. */
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
    this.open({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
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
