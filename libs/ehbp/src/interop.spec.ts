/**
 * Interoperability with other implementations: npm `ehbp`, and the HPKE of `@hpke/core`, which shares no code with the
 * HPKE library of this code.
 */
import { Readable } from 'node:stream';
import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from '@hpke/core';
import { expect, test } from '@jest/globals';
import { deriveResponseKeys, encryptChunk, Identity, PROTOCOL } from 'ehbp';
import {
  ENCAPSULATED_KEY_HEADER,
  encodeKeyConfig,
  generateKeys,
  openRequest,
  parsePublicKey,
  RESPONSE_NONCE_HEADER,
  sealRequest,
} from '#ehbp';
import { encodeFrame } from './frames.ts';

const HPKE = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });
const INFO = new TextEncoder().encode('ehbp request');
const QUESTION = Buffer.alloc(100_000, 'what is a countinghouse? ');
const ANSWER = Buffer.alloc(150_000, 'a house of counting ');

test('decrypts requests of the npm client, and the client decrypts the responses', async () => {
  const keys = await generateKeys();
  const identity = await Identity.unmarshalPublicConfig(encodeKeyConfig(keys.publicKey));
  const plain = new Request('http://127.0.0.1/v1/chat/completions', { method: 'POST', body: QUESTION });
  const { request, context } = await identity.encryptRequestWithContext(plain);
  const opened = await openRequest(keys, request.headers.get(ENCAPSULATED_KEY_HEADER) ?? '');
  expect(await bytesOf(opened.open(Readable.fromWeb(request.body as never)))).toEqual(QUESTION);
  const sealer = await opened.sealResponse();
  const response = new Response(sealer.seal(ANSWER), { headers: { [RESPONSE_NONCE_HEADER]: sealer.nonce } });
  if (!context) throw new Error('the client did not encrypt');
  const read = await identity.decryptResponseWithContext(response, context);
  expect(Buffer.from(await read.arrayBuffer())).toEqual(ANSWER);
});

test('encrypts requests for an enclave that uses another HPKE library, and decrypts its responses', async () => {
  const pair = await HPKE.kem.generateKeyPair();
  const publicKey = new Uint8Array(await HPKE.kem.serializePublicKey(pair.publicKey));
  const request = await sealRequest(publicKey, QUESTION);
  const enc = Buffer.from(request.encapsulatedKey, 'hex');
  const recipient = await HPKE.createRecipientContext({ recipientKey: pair.privateKey, enc, info: INFO });
  const pieces: Buffer[] = [];
  for (const frame of request.frames) pieces.push(Buffer.from(await recipient.open(frame.subarray(4))));
  expect(Buffer.concat(pieces)).toEqual(QUESTION);

  const nonce = crypto.getRandomValues(new Uint8Array(32));
  const secret = await recipient.export(new TextEncoder().encode('ehbp response'), 32);
  const keys = await deriveResponseKeys(new Uint8Array(secret), enc, nonce);
  const halves = [ANSWER.subarray(0, 70_000), ANSWER.subarray(70_000)];
  const frames = await Promise.all(halves.map(async (half, i) => encodeFrame(await encryptChunk(keys, i, half))));
  const opener = request.openResponse(Buffer.from(nonce).toString('hex'));
  expect(await bytesOf(opener.open(Readable.from(frames)))).toEqual(ANSWER);
});

test('decrypts requests of several frames from another HPKE library, and derives the same response keys', async () => {
  const keys = await generateKeys();
  const recipientPublicKey = await HPKE.kem.deserializePublicKey(new Uint8Array(keys.publicKey));
  const sender = await HPKE.createSenderContext({ recipientPublicKey, info: INFO });
  const frames = [QUESTION.subarray(0, 10), QUESTION.subarray(10)];
  const sealed: Uint8Array[] = [];
  for (const each of frames) sealed.push(encodeFrame(new Uint8Array(await sender.seal(each))));
  const opened = await openRequest(keys, Buffer.from(sender.enc).toString('hex'));
  expect(await bytesOf(opened.open(Readable.from(sealed)))).toEqual(QUESTION);

  const { nonce, seal } = await opened.sealResponse().then((sealer) => ({ ...sealer, seal: sealer.seal.bind(sealer) }));
  const secret = await sender.export(new TextEncoder().encode('ehbp response'), 32);
  const derived = await deriveResponseKeys(
    new Uint8Array(secret),
    new Uint8Array(sender.enc),
    Buffer.from(nonce, 'hex'),
  );
  expect(Buffer.from(seal(QUESTION.subarray(0, 10)))).toEqual(
    Buffer.from(encodeFrame(await encryptChunk(derived, 0, QUESTION.subarray(0, 10)))),
  );
  expect(Buffer.from(seal(QUESTION.subarray(10, 99)))).toEqual(
    Buffer.from(encodeFrame(await encryptChunk(derived, 1, QUESTION.subarray(10, 99)))),
  );
});

test('uses the same header names and key configurations as the npm client', async () => {
  expect([ENCAPSULATED_KEY_HEADER, RESPONSE_NONCE_HEADER]).toEqual(
    [PROTOCOL.ENCAPSULATED_KEY_HEADER, PROTOCOL.RESPONSE_NONCE_HEADER].map((name) => name.toLowerCase()),
  );
  const identity = await Identity.generate();
  const config = await identity.marshalConfig();
  expect(Buffer.from(parsePublicKey(config)).toString('hex')).toBe(await identity.getPublicKeyHex());
  expect(Buffer.from(encodeKeyConfig(parsePublicKey(config)))).toEqual(Buffer.from(config));
});

async function bytesOf(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
