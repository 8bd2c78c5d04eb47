import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from '@jest/globals';
import {
  EhbpError,
  type EhbpErrorCode,
  type EnclaveKeys,
  encodeKeyConfig,
  FrameSizeReader,
  generateKeys,
  MAX_FRAME_BYTES,
  openRequest,
  parsePublicKey,
  type SealedRequest,
  sealRequest,
} from '#ehbp';
import { encodeFrame, FrameReader } from './frames.ts';
import { deriveResponseKeys, ResponseOpener } from './response.ts';

const VECTORS: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL('./test-vectors.json', import.meta.url), 'utf8'),
);
const QUESTION = Buffer.from('{"question":"what is a countinghouse?"}');

let keys: EnclaveKeys;
beforeAll(async () => {
  keys = await generateKeys();
});

test('decrypts requests, and responses in chunks of different sizes', async () => {
  const body = Buffer.alloc(200_000, 'the prompt, ');
  for (const cut of [1, 7, 65_536 + 20, body.length * 2]) {
    const { request, sealer } = await answered(body);
    expect(request.frames).toHaveLength(4);
    const plaintexts = ['data: one\n\n', 'x'.repeat(70_000), '', 'data: [DONE]\n\n'];
    const wire = Buffer.concat(plaintexts.map((each) => sealer.seal(Buffer.from(each))));
    const opened = await read(request.openResponse(sealer.nonce).open(inPieces(wire, cut)));
    expect(opened.fault).toBeUndefined();
    expect(opened.text).toBe(plaintexts.join(''));
    expect(opened.pieces).toBe(4);
  }
});

test('yields each frame as soon as it is complete', async () => {
  const { request, sealer } = await answered(QUESTION);
  const first = sealer.seal(Buffer.from('first'));
  const opened = request.openResponse(sealer.nonce).open(
    (async function* () {
      yield first;
      throw new Error('the connection broke');
    })(),
  );
  expect(String((await opened.next()).value)).toBe('first');
  await expect(opened.next()).rejects.toThrow('the connection broke');
});

test('skips frames without ciphertext', async () => {
  const { request, sealer } = await answered(QUESTION);
  const nothing = Buffer.alloc(4);
  const wire = Buffer.concat([
    nothing,
    sealer.seal(Buffer.from('a')),
    nothing,
    nothing,
    sealer.seal(Buffer.from('b')),
    nothing,
  ]);
  expect((await read(request.openResponse(sealer.nonce).open(inPieces(wire, 3)))).text).toBe('ab');
  expect(new FrameSizeReader().add(wire)).toEqual([17, 17]);
});

test('reports the size of a frame after its length bytes, and whether the body is at a frame boundary', async () => {
  const { request } = await answered(Buffer.alloc(100_000));
  const sizes = new FrameSizeReader();
  const wire = Buffer.concat(request.frames);
  const told = Array.from(wire, (_, at) => sizes.add(wire.subarray(at, at + 1)).map((size) => [at, size])).flat();
  expect(told).toEqual([
    [3, 65_552],
    [65_559, 34_480],
  ]);
  expect(sizes.isAtFrameBoundary).toBe(true);
  sizes.add(wire.subarray(0, 2));
  expect(sizes.isAtFrameBoundary).toBe(false);
  expect(() => new FrameSizeReader().add(lengthOf(MAX_FRAME_BYTES + 1))).toThrow(EhbpError);
});

test('matches the published test vectors', async () => {
  const [secret, encapsulated, nonce] = ['exportedSecret', 'requestEnc', 'responseNonce'].map(vector) as [
    Buffer,
    Buffer,
    Buffer,
  ];
  const derived = deriveResponseKeys(secret, encapsulated, nonce);
  expect(derived.key.export()).toEqual(vector('derivedKey'));
  expect(Buffer.from(derived.baseNonce)).toEqual(vector('derivedNonceBase'));
  const opened = await read(new ResponseOpener(derived).open(inPieces(vector('encryptedResponse'), 5)));
  expect(opened.text).toBe(String(vector('plaintext')));
});

test('parses the first key of a configuration, and rejects incomplete configurations and other suites', async () => {
  const config = encodeKeyConfig(keys.publicKey);
  expect(parsePublicKey(Buffer.concat([config, Buffer.from('more')]))).toEqual(new Uint8Array(keys.publicKey));
  for (let length = 0; length < config.length; length++)
    expect(() => parsePublicKey(config.subarray(0, length))).toThrow(EhbpError);
  for (const at of [1, 2, 35, 36, 37, 38, 39, 40])
    expect(() => parsePublicKey(flipped(config, at * 8))).toThrow(EhbpError);
});

test('rejects a response with any changed bit, and yields no plaintext of the changed frame', async () => {
  const { request, sealer } = await answered(QUESTION);
  const [first, second] = ['first', 'second!'].map((each) => sealer.seal(Buffer.from(each))) as [
    Uint8Array,
    Uint8Array,
  ];
  const wire = Buffer.concat([first, second]);
  const opener = request.openResponse(sealer.nonce);
  for (let bit = 0; bit < wire.length * 8; bit++) {
    const { text, fault } = await read(opener.open(inPieces(flipped(wire, bit), 16)));
    expect({ bit, text, failed: fault !== undefined }).toEqual({
      bit,
      text: bit < first.length * 8 ? '' : 'first',
      failed: true,
    });
  }
  for (let bit = 0; bit < 64 * 8; bit++) {
    const nonce = String(flipped(Buffer.from(sealer.nonce), bit));
    expect(
      (
        await read(
          (async function* () {
            yield* request.openResponse(nonce).open(inPieces(wire, 99));
          })(),
        )
      ).fault,
    ).toMatch(/malformed|unauthentic/);
  }
});

test('rejects a response with truncated, reordered, repeated, foreign or oversized frames', async () => {
  const { request, sealer } = await answered(QUESTION);
  const other = await answered(QUESTION);
  const [a, b] = ['first', 'second!'].map((each) => sealer.seal(Buffer.from(each))) as [Uint8Array, Uint8Array];
  const openedAs = (frames: readonly Uint8Array[], by: SealedRequest = request, nonce = sealer.nonce) =>
    read(by.openResponse(nonce).open(inPieces(Buffer.concat(frames), 64)));
  const wire = Buffer.concat([a, b]);
  for (let length = 0; length < wire.length; length++) {
    const { text, fault } = await openedAs([wire.subarray(0, length)]);
    expect(text).toBe(length < a.length ? '' : 'first');
    expect(fault).toBe(length === 0 || length === a.length ? undefined : 'truncated');
  }
  expect(await openedAs([b, a])).toMatchObject({ text: '', fault: 'unauthentic' });
  expect(await openedAs([b])).toMatchObject({ text: '', fault: 'unauthentic' });
  expect(await openedAs([a, a, b])).toMatchObject({ text: 'first', fault: 'unauthentic' });
  expect(await openedAs([a, b], other.request)).toMatchObject({ text: '', fault: 'unauthentic' });
  expect(await openedAs([a, b], request, other.sealer.nonce)).toMatchObject({ text: '', fault: 'unauthentic' });
  expect(await openedAs([a, lengthOf(MAX_FRAME_BYTES + 1), b])).toMatchObject({ text: 'first', fault: 'malformed' });
  expect(await openedAs([a, encodeFrame(Buffer.alloc(15)), b])).toMatchObject({ text: 'first', fault: 'malformed' });
  for (const nonce of ['', 'ab', 'G'.repeat(64), sealer.nonce.toUpperCase(), `${sealer.nonce}00`]) {
    expect(() => request.openResponse(nonce)).toThrow(EhbpError);
  }
});

test('does not allocate the announced length of a frame in advance', () => {
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 64 }, () => new FrameReader());
  for (const each of readers)
    expect([...each.add(Buffer.concat([lengthOf(MAX_FRAME_BYTES), Buffer.alloc(100)]))]).toEqual([]);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(MAX_FRAME_BYTES);
  expect(readers.some((each) => each.isAtFrameBoundary)).toBe(false);
});

test('rejects a changed, truncated, empty or foreign request, and seals no response to an unopened one', async () => {
  const body = Buffer.alloc(70_000, 'p');
  const { encapsulatedKey, frames } = await sealRequest(keys.publicKey, body);
  const wire = Buffer.concat(frames);
  const [first] = frames as [Uint8Array];
  const another = await generateKeys();
  const openedAs = async (bytes: Uint8Array, key = encapsulatedKey, by = keys) => {
    const opened = await openRequest(by, key);
    const { fault, text } = await read(opened.open(inPieces(bytes, 30_000)));
    if (text === '') await expect(opened.sealResponse()).rejects.toThrow('before the request has been opened');
    return [fault, text.length];
  };
  expect(await openedAs(wire)).toEqual([undefined, 70_000]);
  expect(await openedAs(wire, encapsulatedKey, another)).toEqual(['unauthentic', 0]);
  expect(await openedAs(wire, (await sealRequest(keys.publicKey, body)).encapsulatedKey)).toEqual(['unauthentic', 0]);
  expect(await openedAs(flipped(wire, 8 * 100))).toEqual(['unauthentic', 0]);
  expect(await openedAs(flipped(wire, 8 * (wire.length - 1)))).toEqual(['unauthentic', 65_536]);
  expect(await openedAs(wire.subarray(0, -1))).toEqual(['truncated', 65_536]);
  expect(await openedAs(wire.subarray(first.length))).toEqual(['unauthentic', 0]);
  expect(await openedAs(lengthOf(MAX_FRAME_BYTES + 1))).toEqual(['malformed', 0]);
  expect(await openedAs(Buffer.alloc(0))).toEqual(['truncated', 0]);
  expect(await openedAs(Buffer.alloc(8))).toEqual(['truncated', 0]);
});

test('rejects invalid keys on both sides, including a point of low order, and an empty request', async () => {
  for (const key of ['', 'xyz', '0'.repeat(64), '1'.repeat(63)]) {
    await expect(openRequest(keys, key)).rejects.toThrow(EhbpError);
    await expect(sealRequest(Buffer.from(key, 'hex'), QUESTION)).rejects.toThrow(EhbpError);
  }
  await expect(sealRequest(keys.publicKey, Buffer.alloc(0))).rejects.toThrow(RangeError);
});

async function answered(body: Uint8Array) {
  const request = await sealRequest(keys.publicKey, body);
  const opened = await openRequest(keys, request.encapsulatedKey);
  expect((await read(opened.open(request.frames))).text).toBe(String(body));
  return { request, sealer: await opened.sealResponse() };
}

/** Returns the plaintext, the number of its chunks, and the error code at the end. */
async function read(opened: AsyncIterable<Uint8Array>) {
  let text = '';
  let pieces = 0;
  let fault: EhbpErrorCode | undefined;
  try {
    for await (const piece of opened) {
      text += Buffer.from(piece).toString();
      pieces += 1;
    }
  } catch (error) {
    if (!(error instanceof EhbpError)) throw error;
    fault = error.code;
  }
  return { text, pieces, fault };
}

function* inPieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = Buffer.from(bytes);
  copy[bit >> 3] = (copy[bit >> 3] as number) ^ (1 << (bit & 7));
  return copy;
}

function lengthOf(bytes: number): Uint8Array {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes);
  return length;
}

function vector(name: string): Buffer {
  return Buffer.from(VECTORS[name] as string, 'hex');
}
