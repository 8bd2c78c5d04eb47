/** One call of a vendor that sells data, and what it answers. */

export interface DataCall {
  readonly method: 'GET' | 'POST';
  /** At the vendor, with a slash at its beginning. */
  readonly path: string;
  /** As text, not yet encoded; a name may be there several times. */
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** What the vendor is sent beside its credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** The answer is a file, and not JSON. */
  readonly isFile: boolean;
  /** The vendor goes on, and invoices, when we hang up. */
  readonly isBilledAfterDisconnect: boolean;
  readonly signal: AbortSignal;
}

/** An answer with a status from 200 to 299, and nothing of our credential in it. */
export type DataResponse = JsonDataResponse | FileDataResponse;

interface DataResponseBase {
  readonly status: number;
  /** What the vendor calls its answer, by which a line of its invoice can be found. */
  readonly vendorId: string | undefined;
}

export interface JsonDataResponse extends DataResponseBase {
  readonly kind: 'data';
  /** JSON as the vendor wrote it. */
  readonly bytes: Uint8Array;
  /** The same, parsed. */
  readonly value: unknown;
}

export interface FileDataResponse extends DataResponseBase {
  readonly kind: 'file';
  readonly mediaType: string;
  /** As it comes. May be read once; it throws an UpstreamError when it breaks off. */
  readonly bytes: AsyncIterable<Uint8Array>;
}
