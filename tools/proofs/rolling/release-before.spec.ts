import { describe, expect, test } from '@jest/globals';
import { selectRelease } from './release-before.ts';

const FIRST = { version: '1.0.0', commit: 'a' };
const SECOND = { version: '1.0.1', commit: 'b' };

describe('the release before a build', () => {
  test('is the last listed one of another version', () => {
    expect(selectRelease([FIRST], { version: '1.0.1', commit: 'c' })).toBe(FIRST);
    expect(selectRelease([FIRST, SECOND], { version: '1.1.0', commit: 'c' })).toBe(SECOND);
  });

  test('is not the release of the build itself, which the next commit lists', () => {
    expect(selectRelease([FIRST, SECOND], { version: '1.0.1', commit: 'c' })).toBe(FIRST);
  });

  test('is the release of the same version, if there is no other one and it was built from another commit', () => {
    expect(selectRelease([FIRST], { version: '1.0.0', commit: 'c' })).toBe(FIRST);
    expect(selectRelease([FIRST], FIRST)).toBeUndefined();
  });
});
