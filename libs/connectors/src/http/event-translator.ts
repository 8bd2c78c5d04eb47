import { DONE, SseReader, sseData, UpstreamFailure } from '#application';
import type { Usage } from '#domain';
import type { Chunks, Pass } from './relay.ts';

/**
 * Reads the server-sent events of a protocol, and sends on what each becomes. Bytes are handled as Latin-1 text, which
 * keeps them whatever their encoding and wherever a piece ends.
 */
export abstract class EventTranslator implements Chunks {
  /** The end marker has come; what follows it is not looked at. */
  protected marked = false;
  /** The answer has said why it ends, though its end marker may be missing. */
  protected finished = false;
  private readonly reader = new SseReader();

  /** What is passed on of the data of one event: events in our shape, or nothing. @throws UpstreamFailure for an error */
  protected abstract handle(data: string): string;
  abstract usage(): Usage | undefined;
  abstract vendorId(): string | undefined;
  abstract deliveredText(): string;
  abstract hasTold(): boolean;

  get generating(): boolean {
    return this.deliveredText() !== '';
  }

  get ended(): boolean {
    return this.marked;
  }

  accept(piece: Uint8Array, pass: Pass): void {
    this.translate(this.reader.read(latin1(piece)), pass);
  }

  end(pass: Pass): void {
    const { rest } = this.reader;
    if (rest.trim() !== '') this.translate([rest], pass);
    if (this.marked || this.finished) return;
    throw new UpstreamFailure('upstream_error', 'The upstream ended the stream before the answer was complete');
  }

  protected translate(events: readonly string[], pass: Pass): void {
    let out = '';
    try {
      for (const event of events) {
        if (this.marked) break;
        const data = sseData(event);
        if (data === DONE) this.marked = true;
        else if (data !== undefined) out += this.handle(data);
      }
    } finally {
      if (out !== '') pass(Buffer.from(out, 'latin1')); // what came before an event that broke off the answer
    }
  }
}

export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
