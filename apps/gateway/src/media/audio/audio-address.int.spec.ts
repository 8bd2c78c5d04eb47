import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createForm, type TestAccount, TestWorld } from '#testing';

type Gateway = Awaited<ReturnType<TestWorld['startGateway']>>;

let world: TestWorld;
let account: TestAccount;
let gateway: Gateway;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(1.05);
  gateway = await world.startGateway({ audioPort: 0 });
});
afterAll(async () => {
  await gateway.close();
  await world.close();
});

const at = (path: string) => ({ api: gateway.audioApi, headers: { authorization: `Bearer ${account.apiKey}` }, path });

test('serves the audio paths on the audio port, and responds to other paths with 404', async () => {
  expect(new URL(gateway.audioApi).port).not.toBe(new URL(gateway.api).port);
  const { api, headers } = at('/audio');
  expect((await world.send('GET', '/audio/models', { api })).body.data.length).toBeGreaterThan(5);
  expect((await world.send('GET', '/audio/voices', { api })).status).toBe(200);
  const body = createForm({ file: '@file', response_format: 'text' });
  expect((await world.send('POST', '/audio/transcriptions', { api, headers, body })).status).toBe(200);
  expect((await world.send('POST', '/audio/speech', { api, headers, body: { input: 'Hello' } })).status).toBe(200);
  const { origin } = new URL(gateway.audioApi);
  for (const path of ['/v1/models', '/v1/audio/models', '/health', '/api/v1', '/api/v1/models', '/']) {
    const elsewhere = await world.send('GET', path, { api: origin });
    expect([path, elsewhere.status, elsewhere.headers.get('x-request-id')]).toEqual([path, 404, expect.any(String)]);
  }
});

test('serves the list of audio models on the main port, with or without an audio port', async () => {
  for (const api of [gateway.api, world.api])
    expect((await world.send('GET', '/api/v1/audio/models', { api })).status).toBe(200);
});

test('closes the connection of a caller that pipelines many requests with an unknown key, on both ports', async () => {
  const head =
    'POST /api/v1/audio/speech HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk-wrong\r\nContent-Length: 0\r\n\r\n';
  for (const api of [gateway.api, gateway.audioApi]) {
    const socket = connect(Number(new URL(api).port), '127.0.0.1').on('error', () => {});
    socket.resume().write(head.repeat(1_000));
    await new Promise((closed) => void socket.once('close', closed));
  }
});

test('fails to start with a message if the audio port is in use', async () => {
  const audioPort = Number(new URL(gateway.audioApi).port);
  await expect(world.startGateway({ audioPort })).rejects.toThrow(
    `Port ${audioPort} is already in use; stop the process that uses it, or set AUDIO_PORT.`,
  );
});
