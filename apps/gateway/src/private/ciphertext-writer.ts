import type { CiphertextWriter, EncryptedResponseHead, Receipt } from '#application';
import { RESPONSE_NONCE_HEADER } from '#ehbp';
import { formatUsd } from '#kernel';
import { HttpStreamWriter } from '../edge/responses/http-stream-writer.ts';

const USAGE_HEADER = 'x-tinfoil-usage-metrics';
const COST_HEADER = 'x-cost-usd';

/** A client that receives an encrypted answer. What is known only at its end is in its trailers. */
export class CiphertextHttpWriter extends HttpStreamWriter implements CiphertextWriter {
  private trailerUsage: string | undefined;

  begin({ mediaType, nonce, usageText }: EncryptedResponseHead): void {
    if (this.hasStarted) return;
    this.open({
      'content-type': mediaType,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      [RESPONSE_NONCE_HEADER]: nonce,
      ...(usageText === undefined ? {} : { [USAGE_HEADER]: usageText }),
      // HTTP/1.0 has none: its answers end with their connection.
      ...(this.response.useChunkedEncodingByDefault ? { trailer: `${USAGE_HEADER}, ${COST_HEADER}` } : {}),
    });
    this.response.flushHeaders();
  }

  setTrailer(usage: string): void {
    this.trailerUsage = usage;
  }

  /** What is not whole ends with its connection: nothing in the ciphertext would tell. */
  end(receipt: Receipt | undefined, failure?: unknown): void {
    if (!this.hasStarted) return; // a failure that is answered with its own status
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
