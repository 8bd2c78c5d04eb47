import type { FastifyReply } from 'fastify';
import type { ByteWriter, Receipt } from '#application';
import { HttpStreamWriter } from '../../edge/responses/http-stream-writer.ts';

/** Writes audio to the client while it is generated. */
export class AudioStreamWriter extends HttpStreamWriter implements ByteWriter {
  constructor(reply: FastifyReply) {
    super(reply);
  }

  begin(mediaType: string): void {
    if (!this.hasStarted) this.open({ 'content-type': mediaType });
  }

  end(_receipt: Receipt | undefined, failure?: unknown): void {
    if (failure === undefined) this.finish('');
    else this.abort();
  }
}
