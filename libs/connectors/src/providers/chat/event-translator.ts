import { UpstreamFailure } from '#application';
import type { Usage } from '#domain';
import type { Chunks, Pass } from '../../http/relay.ts';

const EVENT_END = /\r?\n\r?\n/;

/**
 * Takes the server-sent events of a protocol apart, and sends on what each becomes. Bytes are handled as Latin-1 text,
 * which keeps them whatever their encoding and wherever a piece ends.
 */
export abstract class EventTranslator implements Chunks {
  /** The end marker has come; what follows it is not looked at. */
  protected marked = false;
  /** The answer has said why it ends, though its end marker may be missing. */
  protected finished = false;
  private pending = '';

  /** What is passed on of one event: events in our shape, or nothing. @throws UpstreamFailure for an error */
  protected abstract handle(event: string): string;
  abstract usage(): Usage | undefined;
  abstract deliveredText(): string;
  abstract hasTold(): boolean;

  get generating(): boolean {
    return this.deliveredText() !== '';
  }

  get ended(): boolean {
    return this.marked;
  }

  accept(piece: Uint8Array, pass: Pass): void {
    const events = (this.pending + latin1(piece)).split(EVENT_END);
    this.pending = events.pop() as string;
    this.translate(events, pass);
  }

  end(pass: Pass): void {
    if (this.pending.trim() !== '') this.translate([this.pending], pass);
    if (this.marked || this.finished) return;
    throw new UpstreamFailure('upstream_error', 'The upstream ended the stream before the answer was complete');
  }

  protected translate(events: readonly string[], pass: Pass): void {
    let out = '';
    try {
      for (const event of events) if (!this.marked) out += this.handle(event);
    } finally {
      if (out !== '') pass(Buffer.from(out, 'latin1')); // what came before an event that broke off the answer
    }
  }
}

export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
