/**
 * Requests that were rejected for lack of money. Only the query history uses these events, so they are not in the
 * account's stream. Each account and day has a short stream of its own, with a maximum length.
 */
import { type Decider, throwUnknownEvent } from '#kernel';
import type { RequestRefused } from './events.ts';

/** Maximum number of recorded requests per account and day. Further rejections would not be informative. */
export const MAX_REFUSED_REQUESTS_PER_DAY = 50;

export interface RecordRefusedRequest {
  readonly type: 'RecordRefusedRequest';
  readonly data: RequestRefused['data'];
}

/** Ids of the requests that are already recorded. */
type RecordedIds = ReadonlySet<string>;

export const refusedRequestsDecider: Decider<RecordRefusedRequest, RecordedIds, RequestRefused> = {
  getInitialState: () => new Set(),
  evolve: (recordedIds, event) =>
    event.type === 'RequestRefused'
      ? new Set([...recordedIds, event.data.requestId])
      : throwUnknownEvent(event as never),
  decide({ data }, recordedIds) {
    const isSkipped = recordedIds.has(data.requestId) || recordedIds.size >= MAX_REFUSED_REQUESTS_PER_DAY;
    return isSkipped ? [] : [{ type: 'RequestRefused', data }];
  },
};

/** Returns the id of the stream with the rejected requests of an account on the UTC day of `at`. */
export function toRefusedRequestsStreamId(accountId: string, at: string): string {
  return `${accountId}-${at.slice(0, 'yyyy-mm-dd'.length)}`;
}
