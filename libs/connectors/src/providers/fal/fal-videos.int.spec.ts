/** Runs against the simulated fal of the sandbox. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ProviderWebhook, VideoProvider } from '#application';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { extendDelay } from '../../../../testing/src/replace-delays.ts';
import { respondWithJson, StubServer } from '../../../../testing/src/servers/stub-server.ts';
import { ProviderHttp } from '../../http/provider-http.ts';
import { createFalProvider } from './index.ts';
import { FalWebhookVerifier } from './webhooks.ts';

const MODEL = 'fal-ai/kling-video/v2.5-turbo/pro/text-to-video';
const TIMEOUTS = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
const signal = new AbortController().signal;

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let opened: ReturnType<typeof createFalProvider>;
let videos: VideoProvider;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  opened = at(`${sandbox.url}/fal`);
  videos = opened.videos;
});
afterAll(async () => {
  await opened.close();
  await sandbox.close();
});

function at(baseUrl: string) {
  const vendor = { slug: 'fal', protocol: 'fal', baseUrl: 'https://queue.fal.run' };
  return createFalProvider({ http: new ProviderHttp(baseUrl, TIMEOUTS, 'k'), credential: 'k' }, vendor);
}

const order = (directive = '', hookUrl?: string) => {
  const prompt = directive === '' ? 'A harbour' : `[[sandbox ${directive}]]`;
  const parameters = { duration: '5', size: '9:16' };
  return { model: MODEL, prompt, parameters, wireMapping: {}, webhookUrl: hookUrl, signal };
};

async function fateOf(directive: string) {
  const { reference } = await videos.submit(order(directive));
  return videos.getStatus(reference, signal);
}

test('a video is pending until it is generated, and then has a URL', async () => {
  const generation = extendDelay(100);
  const { reference, vendorId } = await videos.submit(order('latency=100'));
  expect(vendorId).toMatch(/^[\w-]{36}$/);
  expect(await videos.getStatus(reference, signal)).toEqual({ state: 'pending' });
  generation.end();
  let look = await videos.getStatus(reference, signal);
  while (look.state === 'pending') look = await videos.getStatus(reference, signal);
  expect(look).toMatchObject({ state: 'made', file: { kind: 'address', url: expect.stringMatching(/\.mp4$/) } });
});

test.each([
  ['policy', 'content_policy_violation', 'perhaps'],
  ['error', 'upstream_error', 'no'],
])('a video with the fault %s fails with the code %s (invoiced: %s)', async (fault, code, invoiced) => {
  expect(await fateOf(`fault=${fault}`)).toMatchObject({ state: 'failed', code, invoiced });
});

test('a rejected submission has a status, an unsent one `isUnsent`, and a lost response has neither', async () => {
  await expect(videos.submit(order('fault=429'))).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
  await expect(videos.submit(order('fault=lost'))).rejects.toMatchObject({ status: undefined, isUnsent: false });
  const nobody = at('http://127.0.0.1:9/fal');
  await expect(nobody.videos.submit(order())).rejects.toMatchObject({ status: undefined, isUnsent: true });
  await nobody.close();
});

test('a submission fails if one of its URLs is too long for an event', async () => {
  const liar = new StubServer();
  const lying = at(await liar.listen());
  const status_url = `http://127.0.0.1/${'x'.repeat(2_000_000)}`;
  liar.handler = respondWithJson({
    request_id: 'r',
    status_url,
    response_url: 'http://127.0.0.1/r',
    cancel_url: 'http://127.0.0.1/c',
  });
  await expect(lying.videos.submit(order())).rejects.toMatchObject({ code: 'upstream_error', vendorId: 'r' });
  await lying.close();
  await liar.close();
});

test('a status URL outside of the queue is rejected', async () => {
  const elsewhere = 'http://127.0.0.1:9/status http://127.0.0.1:9/result';
  await expect(videos.getStatus(elsewhere, signal)).rejects.toMatchObject({ code: 'upstream_error' });
});

/** Submits a video and returns its first webhook. */
async function hookOf(directive: string) {
  const heard = Promise.withResolvers<{ headers: IncomingHttpHeaders; body: Buffer }>();
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    heard.resolve({ headers: request.headers, body: Buffer.concat(pieces) });
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const submitted = await videos.submit(order(directive, `http://127.0.0.1:${port}/hook`));
  const hook: ProviderWebhook = await heard.promise;
  server.close();
  return { hook, ...submitted };
}

test('a webhook that fal has signed names its video; a forged, changed or mistimed webhook is rejected', async () => {
  const { hook, vendorId, reference } = await hookOf('latency=1');
  const told = await videos.parseWebhook?.(hook, MODEL);
  expect(told?.vendorId).toBe(vendorId);
  expect(told?.reference).toBe(
    `/fal-ai/kling-video/requests/${vendorId}/status /fal-ai/kling-video/requests/${vendorId}`,
  );
  expect(await videos.getStatus(told?.reference ?? '', signal)).toEqual(await videos.getStatus(reference, signal));

  const changed = Buffer.from(Buffer.from(hook.body).toString().replace(vendorId, 'another'));
  expect(await videos.parseWebhook?.({ ...hook, body: changed }, MODEL)).toBeUndefined();
  const unsigned = { ...hook.headers, 'x-fal-webhook-signature': '00'.repeat(64) };
  expect(await videos.parseWebhook?.({ ...hook, headers: unsigned }, MODEL)).toBeUndefined();
  expect(await videos.parseWebhook?.({ headers: {}, body: hook.body }, MODEL)).toBeUndefined();
  for (const minutes of [-6, 6]) {
    const late = new FalWebhookVerifier(
      `${sandbox.url}/fal/.well-known/jwks.json`,
      () => Date.now() + minutes * 60_000,
    );
    expect(await late.verifySignature(hook)).toBe(false);
  }
  const { hook: forged } = await hookOf('fault=duplicate latency=50'); // the first one is forged
  expect(await videos.parseWebhook?.(forged, MODEL)).toBeUndefined();
});

test('keys are fetched at most once a minute for webhooks that no key has signed', async () => {
  let asked = 0;
  const server = createServer((_, response) => {
    asked++;
    response.end('{"keys":[]}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  let now = Date.now();
  const hooks = new FalWebhookVerifier(`http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`, () => now);
  const { hook } = await hookOf('latency=1');
  for (let i = 0; i < 3; i++) expect(await hooks.verifySignature(hook)).toBe(false);
  expect(asked).toBe(1);
  now += 61_000;
  expect(await hooks.verifySignature(hook)).toBe(false);
  expect(asked).toBe(2);
  server.close();
  server.closeAllConnections();
});
