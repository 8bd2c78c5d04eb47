import type { CiphertextWriter, EncryptedResponseHead, Receipt } from '#application';
import { RESPONSE_NONCE_HEADER } from '#ehbp';
import { formatUsd } from '#kernel';
import { HttpStreamWriter } from '../edge/responses/http-stream-writer.ts';

const USAGE_HEADER = 'x-tinfoil-usage-metrics';
const COST_HEADER = 'x-cost-usd';

/** Writes an encrypted response. The cost, and usage that is known only at the end, are sent as trailers. */
export class CiphertextHttpWriter extends HttpStreamWriter implements CiphertextWriter {
  private trailerUsage: string | undefined;

  begin({ mediaType, nonce, usageText }: EncryptedResponseHead): void {
    if (this.hasStarted) return;
    this.open({
      'content-type': mediaType,
      [RESPONSE_NONCE_HEADER]: nonce,
      ...(usageText === undefined ? {} : { [USAGE_HEADER]: usageText }),
      // HTTP/1.0 has no trailers: the response ends when the connection closes.
      ...(this.response.useChunkedEncodingByDefault ? { trailer: `${USAGE_HEADER}, ${COST_HEADER}` } : {}),
    });
    this.response.flushHeaders();
  }

  setTrailer(usage: string): void {
    this.trailerUsage = usage;
  }

  /**
   * Sends the trailers. A response that failed or has no receipt is aborted instead, because its ciphertext does not
   * show that it is incomplete.
   */
  end(receipt: Receipt | undefined, failure?: unknown): void {
    if (!this.hasStarted) return; // the failure is sent with its own HTTP status
    if (failure !== undefined || !receipt) {
      this.abort();
      return;
    }
    this.response.addTrailers({
      ...(this.trailerUsage === undefined ? {} : { [USAGE_HEADER]: this.trailerUsage }),
      [COST_HEADER]: formatUsd(receipt.charged),
    });
    this.finish('');
  }
}
