/** Runs against the simulated Gemini API of the sandbox. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { VideoProvider } from '#application';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { extendDelay } from '../../../../testing/src/replace-delays.ts';
import { ProviderHttp } from '../../http/provider-http.ts';
import { createGoogleProvider } from './index.ts';

const TIMEOUTS = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
const signal = new AbortController().signal;

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let opened: ReturnType<typeof createGoogleProvider>;
let videos: VideoProvider;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  opened = createGoogleProvider({ http: new ProviderHttp(`${sandbox.url}/google`, TIMEOUTS, 'k'), credential: 'k' });
  videos = opened.videos;
});
afterAll(async () => {
  await opened.close();
  await sandbox.close();
});

const order = (directive = '', more: object = {}) => ({
  model: 'veo-3.0-generate-001',
  prompt: directive === '' ? 'A harbour' : `[[sandbox ${directive}]]`,
  parameters: { duration: '4', size: '9:16', negative_prompt: 'people', ...more },
  wireMapping: { always: { resolution: '720p' } },
  signal,
});

async function fateOf(directive: string) {
  const { reference } = await videos.submit(order(directive));
  let look = await videos.getStatus(reference, signal);
  while (look.state === 'pending') look = await videos.getStatus(reference, signal);
  return look;
}

test('a video is pending at first; a generated video has a URL and the headers for its download', async () => {
  const generation = extendDelay(100);
  const { reference, vendorId } = await videos.submit(order('latency=100'));
  expect(reference).toBe(`models/veo-3.0-generate-001/operations/${vendorId}`);
  expect(await videos.getStatus(reference, signal)).toEqual({ state: 'pending' });
  generation.end();
  const look = await fateOf('');
  expect(look).toMatchObject({ state: 'made', file: { kind: 'address', headers: { 'x-goog-api-key': 'k' } } });
  const { url = '', headers = {} } = (look as { file: { url?: string; headers?: Record<string, string> } }).file;
  const file = await fetch(url, { headers });
  expect(Buffer.from(await file.arrayBuffer()).toString('latin1', 4, 8)).toBe('ftyp');
});

test.each([
  ['policy', 'content_policy_violation', 'perhaps'],
  ['fewer', 'upstream_error', 'perhaps'],
  ['error', 'upstream_error', 'no'],
])('a video with the fault %s fails with the code %s (invoiced: %s)', async (fault, code, invoiced) => {
  expect(await fateOf(`fault=${fault}`)).toMatchObject({ state: 'failed', code, invoiced });
});

test('a rejected submission has a status; a lost response has none', async () => {
  await expect(videos.submit(order('fault=429'))).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
  await expect(videos.submit(order('', { duration: '5' }))).rejects.toMatchObject({
    code: 'invalid_request',
    status: 400,
  });
  await expect(videos.submit(order('fault=lost'))).rejects.toMatchObject({ status: undefined, isUnsent: false });
});
