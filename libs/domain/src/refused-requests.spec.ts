import { describe, expect, test } from '@jest/globals';
import { fold } from '#kernel';
import { MAX_REFUSALS_PER_DAY, type NoteRefusal, refusalsDecider, refusalsOf } from './refused-requests.ts';

const at = '2026-11-20T12:00:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const note = (requestId: string): NoteRefusal => ({
  type: 'NoteRefusal',
  data: { accountId: 'a', keyId: 'k', requestId, query, errorCode: 'insufficient_balance', at },
});

describe('a refusal', () => {
  test('is noted once', () => {
    const noted = refusalsDecider.decide(note('r1'), refusalsDecider.initial());
    expect(noted).toEqual([{ type: 'RequestRefused', data: note('r1').data }]);
    expect(refusalsDecider.decide(note('r1'), fold(refusalsDecider, refusalsDecider.initial(), noted))).toEqual([]);
  });

  test('is not noted when the day of the account is full', () => {
    let noted = refusalsDecider.initial();
    for (let i = 0; i < MAX_REFUSALS_PER_DAY; i++)
      noted = fold(refusalsDecider, noted, refusalsDecider.decide(note(`r${i}`), noted));
    expect(noted.size).toBe(MAX_REFUSALS_PER_DAY);
    expect(refusalsDecider.decide(note('one more'), noted)).toEqual([]);
  });

  test('stands in the stream of its account and day', () => {
    expect(refusalsOf('a', at)).toBe('a-2026-11-20');
  });
});
