/**
 * Requests that were refused because there was no money for them. They are facts of the query history and of nothing else, so
 * they stand beside the account: one short stream for each account and day, that ends when it is full.
 */
import { type Decider, throwUnknownEvent } from '#kernel';
import type { RequestRefused } from './events.ts';

/** Of one account, in the history of one day. What comes after them says nothing new. */
export const MAX_REFUSED_REQUESTS_PER_DAY = 50;

export interface RecordRefusedRequest {
  readonly type: 'RecordRefusedRequest';
  readonly data: RequestRefused['data'];
}

/** The ids of the requests that are noted. */
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

/** The id of the stream for what an account was refused on the day of an instant. */
export function toRefusedRequestsStreamId(accountId: string, at: string): string {
  return `${accountId}-${at.slice(0, 'yyyy-mm-dd'.length)}`;
}
