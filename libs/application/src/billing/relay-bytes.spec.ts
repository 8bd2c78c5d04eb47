import { describe, expect, test } from '@jest/globals';
import { createTestRuntime } from '#testing';
import { UpstreamError } from '../errors.ts';
import { type ByteWriter, relayBytes } from './relay-bytes.ts';

const BROKEN = new UpstreamError('upstream_error', 'broken off');
const GONE = new UpstreamError('client_disconnected', 'gone');
const LATE = new UpstreamError('timeout', 'too late');

/** Yields these chunks of audio in order, and throws a failure when it is the next element. */
async function* sound(...pieces: readonly (string | UpstreamError)[]): AsyncIterable<Uint8Array> {
  for (const piece of pieces) {
    if (piece instanceof UpstreamError) throw piece;
    yield Buffer.from(piece);
  }
}

async function soon(happens: () => void): Promise<void> {
  await Promise.resolve();
  happens();
}

/** @param keepsWaiting delay of each write in milliseconds */
function listener({ keepsWaiting = 0, leavesAfter = Number.POSITIVE_INFINITY } = {}) {
  let now = 0;
  const heard: string[] = [];
  const client: ByteWriter = {
    hasStarted: false,
    disconnected: new Promise(() => {}),
    storesResponse: false,
    begin() {
      Object.assign(client, { hasStarted: true });
    },
    write(piece) {
      heard.push(Buffer.from(piece).toString());
      if (keepsWaiting === 0) return undefined;
      return soon(() => {
        now += keepsWaiting;
      });
    },
    get isListening() {
      return heard.length < leavesAfter;
    },
    end() {},
  };
  const brokenOff = (failure: UpstreamError) => failure;
  const relay = (...pieces: readonly (string | UpstreamError)[]) => {
    return relayBytes(
      { mediaType: 'audio/mpeg', bytes: sound(...pieces) },
      { markLastAttemptFailed: brokenOff, runtime: createTestRuntime({ now: () => now }) },
      client,
    );
  };
  return { heard, relay };
}

describe('relayed audio', () => {
  test('consists of all chunks that are not empty', async () => {
    const { heard, relay } = listener();
    expect(await relay('a', '', 'b')).toBeUndefined();
    expect(heard).toEqual(['a', 'b']);
  });

  test('is read no further after the client has disconnected, and is charged', async () => {
    const { heard, relay } = listener({ leavesAfter: 1 });
    expect(await relay('a', 'b', BROKEN)).toBeUndefined();
    expect(heard).toEqual(['a']);
  });

  test.each([
    ['before the first byte', [BROKEN], 0],
    ['after the first byte', ['a', BROKEN], 0],
    ['after the client delayed it for a short time', ['a', 'b', BROKEN], 2_000],
    ['by a timeout that the client did not cause', ['a', LATE], 0],
    ['without a byte and without an error', [], 0],
    ['after empty chunks only', ['', ''], 0],
  ] as const)('is not charged if it ends %s', async (_, pieces, keepsWaiting) => {
    await expect(listener({ keepsWaiting }).relay(...pieces)).rejects.toBeInstanceOf(UpstreamError);
  });

  test.each([
    ['the client has disconnected', ['a', GONE], 0],
    ['the client delayed the provider until the provider gave up', ['a', 'b', BROKEN], 3_000],
    ['the client read so slowly that the time limit was reached', ['a', 'b', 'c', LATE], 2_000],
  ] as const)('is charged if %s', async (_, pieces, keepsWaiting) => {
    expect(await listener({ keepsWaiting }).relay(...pieces)).toBeInstanceOf(UpstreamError);
  });
});
