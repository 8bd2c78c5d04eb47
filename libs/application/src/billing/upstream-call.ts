/** A call of a vendor, as the money path sees it: how it is made, and what is known of what it has used. */
import type { Endpoint } from '#catalogue';
import type { CallUsage, Usage } from '#domain';

/** A call that can be made to any endpoint. */
export interface UpstreamCall<A> {
  /** It can be made only once: what it sends is gone then. */
  readonly isSingleUse?: true;
  /** @throws UpstreamError */
  send(endpoint: Endpoint): Promise<A>;
  /** The usage that no upstream reported, counted from the request and from what was delivered. */
  estimateUsage(delivered: string): Promise<Usage>;
  /**
   * What one that has failed is invoiced for, where it is not paid by tokens alone: the house bears it.
   * @param usage as the upstream said it; undefined where the answer is lost
   */
  getLostUsage?(endpoint: Endpoint, usage: Usage | undefined): Pick<CallUsage, 'usage' | 'terms'>;
}

/** An answer and its endpoint. */
export interface EndpointResponse<A> {
  readonly response: A;
  readonly endpoint: Endpoint;
  /** When it was asked, and when its first byte was there, in milliseconds of `performance.now`. */
  readonly sentAtMs: number;
  readonly firstByteAtMs: number;
}

/** What is known of a call that was made. */
export interface CallResult {
  /** As the upstream reported it. */
  readonly usage: Usage | undefined;
  readonly getDeliveredText: () => string;
  /** What the upstream calls its answer. */
  readonly vendorId: string | undefined;
}

/** The same of an answer that came as a stream, once it has ended. */
export interface StreamResult {
  usage(): Usage | undefined;
  getDeliveredText(): string;
  vendorId(): string | undefined;
  /** How long nothing came that can be seen, though it was asked for and read, beyond what the first byte may take. */
  getIdleMs(graceMs: number): number;
}
