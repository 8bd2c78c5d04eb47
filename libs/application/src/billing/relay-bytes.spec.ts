import { describe, expect, test } from '@jest/globals';
import { UpstreamError } from '../errors.ts';
import { type ByteWriter, relayBytes } from './relay-bytes.ts';

const BROKEN = new UpstreamError('upstream_error', 'broken off');
const GONE = new UpstreamError('client_disconnected', 'gone');
const LATE = new UpstreamError('timeout', 'too late');

/** Sound in pieces, which breaks off where there is a failure. */
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

/** @param keepsWaiting milliseconds with each piece */
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
      { markLastAttemptFailed: brokenOff },
      client,
      () => now,
    );
  };
  return { heard, relay };
}

describe('sound that is passed on', () => {
  test('is all of it, but for empty pieces', async () => {
    const { heard, relay } = listener();
    expect(await relay('a', '', 'b')).toBeUndefined();
    expect(heard).toEqual(['a', 'b']);
  });

  test('is not read any further when nobody listens, and is owed', async () => {
    const { heard, relay } = listener({ leavesAfter: 1 });
    expect(await relay('a', 'b', BROKEN)).toBeUndefined();
    expect(heard).toEqual(['a']);
  });

  test.each([
    ['before the first byte', [BROKEN], 0],
    ['after it', ['a', BROKEN], 0],
    ['after the client kept it waiting for a while', ['a', 'b', BROKEN], 2_000],
    ['because time was up, though the client kept up', ['a', LATE], 0],
    ['without a byte, and without a word', [], 0],
    ['with empty pieces only', ['', ''], 0],
  ] as const)('is not owed when the vendor ends it %s', async (_, pieces, keepsWaiting) => {
    await expect(listener({ keepsWaiting }).relay(...pieces)).rejects.toBeInstanceOf(UpstreamError);
  });

  test.each([
    ['the client has left', ['a', GONE], 0],
    ['the client kept the vendor waiting until it gave up', ['a', 'b', BROKEN], 3_000],
    ['the client read so slowly that time was up', ['a', 'b', 'c', LATE], 2_000],
  ] as const)('is owed when %s', async (_, pieces, keepsWaiting) => {
    expect(await listener({ keepsWaiting }).relay(...pieces)).toBeInstanceOf(UpstreamError);
  });
});
