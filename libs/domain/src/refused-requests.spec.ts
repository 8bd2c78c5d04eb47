import { describe, expect, test } from '@jest/globals';
import { fold } from '#kernel';
import {
  MAX_REFUSED_REQUESTS_PER_DAY,
  type RecordRefusedRequest,
  refusedRequestsDecider,
  toRefusedRequestsStreamId,
} from './refused-requests.ts';

const at = '2026-11-20T12:00:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const note = (requestId: string): RecordRefusedRequest => ({
  type: 'RecordRefusedRequest',
  data: { accountId: 'a', keyId: 'k', requestId, query, errorCode: 'insufficient_balance', at },
});

describe('a rejected request', () => {
  test('is recorded once', () => {
    const noted = refusedRequestsDecider.decide(note('r1'), refusedRequestsDecider.getInitialState());
    expect(noted).toEqual([{ type: 'RequestRefused', data: note('r1').data }]);
    expect(
      refusedRequestsDecider.decide(
        note('r1'),
        fold(refusedRequestsDecider, refusedRequestsDecider.getInitialState(), noted),
      ),
    ).toEqual([]);
  });

  test('is not recorded when the account has reached the maximum of the day', () => {
    let noted = refusedRequestsDecider.getInitialState();
    for (let i = 0; i < MAX_REFUSED_REQUESTS_PER_DAY; i++)
      noted = fold(refusedRequestsDecider, noted, refusedRequestsDecider.decide(note(`r${i}`), noted));
    expect(noted.size).toBe(MAX_REFUSED_REQUESTS_PER_DAY);
    expect(refusedRequestsDecider.decide(note('one more'), noted)).toEqual([]);
  });

  test('is in the stream of its account and day', () => {
    expect(toRefusedRequestsStreamId('a', at)).toBe('a-2026-11-20');
  });
});
