import { describe, expect, test } from '@jest/globals';
import { readServerSettings } from './eventstore-server.ts';

const all = {
  EVENTSTORE_URL: 'esdb://127.0.0.1:2113?tls=false',
  PROVE_EVENTSTORE_START: './start.sh',
  PROVE_EVENTSTORE_PID_FILE: '/run/eventstore.pid',
};

describe('the settings by which proofs kill an event store', () => {
  test('name it, how it is started and which its processes are', () => {
    expect(readServerSettings(all)).toEqual({
      url: 'esdb://127.0.0.1:2113?tls=false',
      start: './start.sh',
      pidFile: '/run/eventstore.pid',
    });
  });

  test('may all be left out, and a server may be used that is not killed', () => {
    expect(readServerSettings({})).toBeUndefined();
    expect(readServerSettings({ EVENTSTORE_URL: all.EVENTSTORE_URL })).toBeUndefined();
  });

  test.each([
    ['PROVE_EVENTSTORE_START', 'need each other: the first is not set'],
    ['PROVE_EVENTSTORE_PID_FILE', 'need each other: the second is not set'],
    ['EVENTSTORE_URL', 'EVENTSTORE_URL names, which is not set'],
  ])('are refused without %s', (missing, sentence) => {
    expect(() => readServerSettings({ ...all, [missing]: '' })).toThrow(sentence);
  });
});
