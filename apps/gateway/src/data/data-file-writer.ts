import type { FastifyReply } from 'fastify';
import type { DataFileWriter, Receipt } from '#application';
import { formatUsd, type PicoUsd, ZERO_USD } from '#kernel';
import { HttpStreamWriter } from '../edge/responses/http-stream-writer.ts';

/** Forwards a file to the client while it arrives from the provider. */
export class DataFileHttpWriter extends HttpStreamWriter implements DataFileWriter {
  private price: PicoUsd = ZERO_USD;

  constructor(reply: FastifyReply) {
    super(reply);
  }

  setPrice(price: PicoUsd): void {
    this.price = price;
  }

  begin(mediaType: string): void {
    if (this.hasStarted) return;
    this.open({ 'content-type': mediaType, 'x-cost-usd': formatUsd(this.price) });
  }

  end(_receipt: Receipt | undefined, failure?: unknown): void {
    if (!this.hasStarted) return; // the failure is sent with its own HTTP status
    if (failure === undefined) this.finish('');
    else this.abort();
  }
}
