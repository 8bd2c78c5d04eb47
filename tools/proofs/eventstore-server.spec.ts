import { describe, expect, test } from '@jest/globals';
import { readServerSettings } from './eventstore-server.ts';

const all = {
  EVENTSTORE_URL: 'esdb://127.0.0.1:2113?tls=false',
  PROVE_EVENTSTORE_START: './start.sh',
  PROVE_EVENTSTORE_PID_FILE: '/run/eventstore.pid',
};

describe('the settings with which proofs kill an event store', () => {
  test('specify its URL, its start command and the file with its process ids', () => {
    expect(readServerSettings(all)).toEqual({
      url: 'esdb://127.0.0.1:2113?tls=false',
      start: './start.sh',
      pidFile: '/run/eventstore.pid',
    });
  });

  test('can be omitted, also if EVENTSTORE_URL is set', () => {
    expect(readServerSettings({})).toBeUndefined();
    expect(readServerSettings({ EVENTSTORE_URL: all.EVENTSTORE_URL })).toBeUndefined();
  });

  test.each([
    ['PROVE_EVENTSTORE_START', 'must be set together: the first is not set'],
    ['PROVE_EVENTSTORE_PID_FILE', 'must be set together: the second is not set'],
    ['EVENTSTORE_URL', 'require EVENTSTORE_URL, which is not set'],
  ])('are rejected without %s', (missing, sentence) => {
    expect(() => readServerSettings({ ...all, [missing]: '' })).toThrow(sentence);
  });
});
