/** Calls to data providers, and their responses. */
import type { ReportedBill } from '../billing/reported-bill.ts';

export interface DataCall {
  readonly method: 'GET' | 'POST';
  /** Path at the provider, with a leading slash. */
  readonly path: string;
  /** Not encoded yet; a name may occur several times. */
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** Headers in addition to the credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** The response is a file instead of JSON. */
  readonly isFile: boolean;
  /** The provider continues, and invoices the call, after the gateway has disconnected. */
  readonly isBilledAfterDisconnect: boolean;
  readonly signal: AbortSignal;
}

/** A response with a status from 200 to 299, in which our credential is masked. */
export type DataResponse = JsonDataResponse | FileDataResponse;

interface DataResponseBase {
  readonly status: number;
  /** The provider's id of its response, which identifies the line of its invoice. */
  readonly vendorId: string | undefined;
}

export interface JsonDataResponse extends DataResponseBase {
  readonly kind: 'data';
  /** The JSON that the provider sent. */
  readonly bytes: Uint8Array;
  /** The same JSON, parsed. */
  readonly value: unknown;
  readonly reportedBill?: ReportedBill;
}

export interface FileDataResponse extends DataResponseBase {
  readonly kind: 'file';
  readonly mediaType: string;
  /** Bytes as they arrive. Can be read once; throws an UpstreamError if the response is interrupted. */
  readonly bytes: AsyncIterable<Uint8Array>;
}
