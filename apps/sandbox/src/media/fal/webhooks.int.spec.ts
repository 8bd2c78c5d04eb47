import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startSandbox } from '../../sandbox.ts';

interface Hook {
  readonly isSigned: boolean;
  readonly status: string;
  readonly request_id: string;
  readonly error?: string;
  readonly payload: Record<string, unknown> | null;
}

const received: Hook[] = [];
/** Statuses of the next responses. */
const refusals: number[] = [];
const waiting: { readonly count: number; resolve(): void }[] = [];
let key: ReturnType<typeof createPublicKey>;
const server = createServer(async (request, response) => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  const body = Buffer.concat(pieces);
  received.push({ ...JSON.parse(body.toString()), isSigned: isSigned(request.headers, body) });
  response.writeHead(refusals.length > 0 ? (refusals.shift() as number) : 200).end();
  for (const { count, resolve } of waiting) if (received.length >= count) resolve();
});
const hooks = async (count: number) => {
  if (received.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
  return received.splice(0);
};

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { keys } = (await (await fetch(`${sandbox.url}/fal-rest/.well-known/jwks.json`)).json()) as {
    keys: JsonWebKey[];
  };
  key = createPublicKey({ key: keys[0] as JsonWebKey, format: 'jwk' });
});
afterAll(async () => {
  await sandbox.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Verifies a webhook as fal's documentation describes. */
function isSigned(headers: IncomingHttpHeaders, body: Buffer): boolean {
  const of = (name: string) => String(headers[`x-fal-webhook-${name}`]);
  const digest = createHash('sha256').update(body).digest('hex');
  const message = [of('request-id'), of('user-id'), of('timestamp'), digest].join('\n');
  const isNew = Math.abs(Date.now() / 1_000 - Number(of('timestamp'))) < 300;
  return isNew && verify(null, Buffer.from(message), key, Buffer.from(of('signature'), 'hex'));
}

async function submit(prompt: string): Promise<string> {
  const url = encodeURIComponent(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
  const answer = await fetch(`${sandbox.url}/fal/fal-ai/qwen-image?fal_webhook=${url}`, {
    method: 'POST',
    headers: { authorization: 'Key k' },
    body: JSON.stringify({ prompt }),
  });
  return ((await answer.json()) as { request_id: string }).request_id;
}

test('a signed webhook reports the result of a request', async () => {
  const id = await submit('A coin');
  const payload = expect.objectContaining({ images: [expect.objectContaining({ content_type: 'image/png' })] });
  expect(await hooks(1)).toEqual([expect.objectContaining({ isSigned: true, status: 'OK', request_id: id, payload })]);
});

test('a webhook reports a failed request', async () => {
  const id = await submit('[[sandbox fault=policy]]');
  const payload = { detail: [expect.objectContaining({ type: 'content_policy_violation' })] };
  const told = { isSigned: true, status: 'ERROR', error: 'Invalid status code: 422', request_id: id, payload };
  expect(await hooks(1)).toEqual([expect.objectContaining(told)]);
});

test('with the fault duplicate, a forged webhook and one without payload precede three with the result', async () => {
  const id = await submit('[[sandbox fault=duplicate latency=10]]');
  const all = await hooks(5);
  expect(new Set(all.map((each) => each.request_id))).toEqual(new Set([id]));
  expect(all.map(({ isSigned, status, payload }) => [isSigned, status, payload !== null])).toEqual([
    [false, 'ERROR', true],
    [true, 'OK', false],
    ...Array.from({ length: 3 }, () => [true, 'OK', true]),
  ]);
});

test('a webhook is repeated if it is not accepted', async () => {
  refusals.push(503);
  const id = await submit('A coin');
  expect((await hooks(2)).map((each) => [each.request_id, each.isSigned])).toEqual([
    [id, true],
    [id, true],
  ]);
});
