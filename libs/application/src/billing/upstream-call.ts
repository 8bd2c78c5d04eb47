/** A call to a provider as billing sees it: how it is sent, and what is known about its usage. */
import type { Endpoint } from '#catalogue';
import { type CallUsage, getQuantity, type Usage } from '#domain';
import type { IdleTimeSource } from '../routing/endpoint-health.ts';
import type { ReportedBill } from './reported-bill.ts';

/** A call that can be sent to any endpoint of an order. */
export interface UpstreamCall<A> {
  /** The call consumes its input, so it can be sent only once. */
  readonly isSingleUse?: true;
  /** @throws UpstreamError */
  send(endpoint: Endpoint): Promise<A>;
  /** Estimates the usage from the request and the delivered text, if the provider did not report it. */
  estimateUsage(delivered: string): Promise<Usage>;
  /**
   * Returns the usage that the provider invoices for a failed call; the operator absorbs its cost. Omitted if calls are
   * billed by tokens alone.
   * @param usage as the provider reported it; undefined if the response is lost
   */
  getLostUsage?(endpoint: Endpoint, usage: Usage | undefined): Pick<CallUsage, 'usage' | 'terms'>;
}

/** What bills a call whose usage the provider did not report. */
export type UsageEstimate = Pick<UpstreamCall<unknown>, 'estimateUsage'>;

/** A response and the endpoint that sent it. */
export interface EndpointResponse<A> {
  readonly response: A;
  readonly endpoint: Endpoint;
  /** When the first attempt was sent, by `runtime.now()`. */
  readonly sentAtMs: number;
  /** When the response or, of a stream, its first part had arrived. */
  readonly firstByteAtMs: number;
}

/** What is known about a call that was made. */
export interface CallResult {
  /** As the provider reported it. */
  readonly usage: Usage | undefined;
  readonly getDeliveredText: () => string;
  /** The provider's id of its response. */
  readonly vendorId: string | undefined;
  readonly reportedBill?: ReportedBill | undefined;
}

/**
 * Returns the usage of a call as the provider reported it, or else an estimate. A report without output tokens for a
 * text is incomplete, whatever it says about the input: the output is estimated, and the input if the report has none.
 */
export async function measureUsage(
  { estimateUsage }: UsageEstimate,
  { usage: reported, getDeliveredText }: CallResult,
): Promise<Pick<CallUsage, 'usage' | 'estimated'>> {
  const isComplete = reported && (getQuantity('output', reported) > 0 || getDeliveredText().trim() === '');
  if (isComplete) return { usage: reported, estimated: false };
  const estimate = await estimateUsage(getDeliveredText());
  const { output = 0, reasoning = 0 } = estimate;
  const hasInput = reported !== undefined && getQuantity('input', reported) > 0;
  return { usage: hasInput ? { ...reported, output, reasoning } : estimate, estimated: true };
}

/** What is known about a streamed response once it has ended. */
export interface StreamResult extends IdleTimeSource {
  usage(): Usage | undefined;
  getDeliveredText(): string;
  vendorId(): string | undefined;
  reportedBill?(): ReportedBill;
  /** Milliseconds in which nothing was read because the receiver was full. */
  getPausedMs(): number;
}

/** Returns what billing needs to know about a stream that has ended. */
export function toStreamResult(
  stream: Pick<StreamResult, 'usage' | 'vendorId' | 'reportedBill' | 'getDeliveredText'>,
): CallResult {
  return {
    usage: stream.usage(),
    getDeliveredText: () => stream.getDeliveredText(),
    vendorId: stream.vendorId(),
    reportedBill: stream.reportedBill?.(),
  };
}
