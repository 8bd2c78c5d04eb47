import { describe, expect, test } from '@jest/globals';
import { getNextReset, getWindowId } from '#domain';

describe('a reset window', () => {
  test.each([
    ['daily', '2026-11-20T23:59:59.999Z', 'daily:2026-11-20', '2026-11-21T00:00:00.000Z'],
    ['weekly', '2026-11-20T12:00:00.000Z', 'weekly:2026-11-16', '2026-11-23T00:00:00.000Z'],
    ['weekly', '2026-11-16T00:00:00.000Z', 'weekly:2026-11-16', '2026-11-23T00:00:00.000Z'],
    ['weekly', '2026-11-15T23:59:59.999Z', 'weekly:2026-11-09', '2026-11-16T00:00:00.000Z'],
    ['monthly', '2026-12-31T23:59:59.999Z', 'monthly:2026-12-01', '2027-01-01T00:00:00.000Z'],
    ['monthly', '2028-02-29T12:00:00.000Z', 'monthly:2028-02-01', '2028-03-01T00:00:00.000Z'],
  ] as const)('of the period %s that contains %s has the id %s and ends at %s', (period, at, window, end) => {
    expect(getWindowId(period, at)).toBe(window);
    expect(getNextReset(period, at)).toBe(end);
  });

  test('never ends without a reset period', () => {
    expect(getWindowId(null, '2026-11-20T00:00:00.000Z')).toBe(getWindowId(null, '2036-11-20T00:00:00.000Z'));
    expect(getNextReset(null, '2026-11-20T00:00:00.000Z')).toBeNull();
  });
});
