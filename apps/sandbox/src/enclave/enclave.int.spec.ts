import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Identity, KeyConfigMismatchError, Transport } from 'ehbp';
import { request } from 'undici';
import {
  EhbpError,
  ENCAPSULATED_KEY_HEADER,
  FrameSizeReader,
  KEY_CONFIG_PROBLEM,
  parsePublicKey,
  RESPONSE_NONCE_HEADER,
  sealRequest,
} from '#ehbp';
import { startSandbox } from '../sandbox.ts';

const MODEL = 'gpt-oss-120b';
const SECRET = 'the secret of the user';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let enclave: string;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  enclave = `${sandbox.url}/enclaves/${MODEL}`;
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

interface Asked {
  readonly stream?: boolean;
  readonly model?: string;
  readonly at?: string;
  /** Whether to request the usage. */
  readonly usage?: boolean;
  readonly more?: Readonly<Record<string, unknown>>;
}

/** Sends a chat. Returns the text that the client could read of the response, and how it ended for the client. */
async function ask(prompt: string, { stream = false, model = MODEL, at = enclave, usage = true, more }: Asked = {}) {
  const chat = { model, stream, messages: [{ role: 'user', content: `${SECRET} ${prompt}` }], ...more };
  const sealed = await sealRequest(await attestedKey(at), Buffer.from(JSON.stringify(chat)));
  const answer = await request(`${at}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer any',
      [ENCAPSULATED_KEY_HEADER]: sealed.encapsulatedKey,
      ...(usage ? { 'x-tinfoil-request-usage-metrics': 'true' } : {}),
    },
    body: Readable.from(sealed.frames),
  });
  const nonce = answer.headers[RESPONSE_NONCE_HEADER] as string | undefined;
  const wire: Uint8Array[] = [];
  const frames = new FrameSizeReader();
  let text = '';
  let end = 'clean';
  try {
    const arriving = recorded(answer.body, wire);
    const pieces = nonce === undefined ? arriving : sealed.openResponse(nonce).open(arriving);
    for await (const piece of pieces) text += Buffer.from(piece).toString();
  } catch (error) {
    end = error instanceof EhbpError ? error.code : 'broken';
    await answer.body.dump().catch(() => {});
  }
  const sizes = nonce === undefined ? [] : frames.add(Buffer.concat(wire));
  return {
    status: answer.statusCode,
    headers: answer.headers,
    trailers: answer.trailers,
    nonce,
    text,
    end,
    wire,
    sizes,
  };
}

async function* recorded(body: AsyncIterable<Uint8Array>, wire: Uint8Array[]) {
  for await (const piece of body) {
    wire.push(piece);
    yield piece;
  }
}

async function attestedKey(at: string): Promise<Uint8Array> {
  const bundle = await got<{ enclaveAttestationReport: { format: string; body: string } }>(`${at}/attestation`);
  const { format, body } = bundle.enclaveAttestationReport;
  expect(format).toBe('simulated');
  const report = JSON.parse(Buffer.from(body, 'base64').toString());
  expect(report).toEqual({ hpke_public_key: expect.any(String), model: expect.stringContaining('-') });
  return Buffer.from(report.hpke_public_key, 'hex');
}

async function got<T>(url: string): Promise<T> {
  return (await fetch(url)).json() as Promise<T>;
}

async function billed() {
  const lines = await got<{ tokens: { input: number; output: number }; model: string }[]>(`${sandbox.url}/bill/lines`);
  return lines.map(({ model, tokens: { input, output } }) => `${model}: ${metrics(input, output)}`);
}

function metrics(prompt: number, completion: number) {
  return `prompt=${prompt},completion=${completion},total=${prompt + completion}`;
}

describe('an enclave', () => {
  test('serves chats to the client of the npm package ehbp, non-streaming and streamed', async () => {
    const config = await fetch(`${enclave}/.well-known/hpke-keys`);
    expect(config.headers.get('content-type')).toBe('application/ohttp-keys');
    const key = new Uint8Array(await config.arrayBuffer());
    expect(parsePublicKey(key)).toEqual(new Uint8Array(await attestedKey(enclave)));
    const client = new Transport(await Identity.unmarshalPublicConfig(key), new URL(enclave).host);
    const chat = (stream: boolean) => ({
      headers: { authorization: 'Bearer any' },
      method: 'POST',
      body: JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: '[[sandbox text="Hello"]]' }] }),
    });
    const whole = await client.request(`${enclave}/v1/chat/completions`, chat(false));
    expect(await whole.json()).toMatchObject({ model: MODEL, choices: [{ message: { content: 'Hello' } }] });
    const stream = await (await client.request(`${enclave}/v1/chat/completions`, chat(true))).text();
    expect(stream).toMatch(/"content":"Hello".*data: \[DONE\]\n\n$/s);
  });

  test('reports the usage on request, in a header or in the trailer of a stream, and bills exactly that', async () => {
    const whole = await ask('[[sandbox tokens=20 reasoning=4]]');
    const { usage } = JSON.parse(whole.text);
    const told = metrics(usage.prompt_tokens, 20);
    expect(whole).toMatchObject({ status: 200, end: 'clean', headers: { 'x-tinfoil-usage-metrics': told } });
    const stream = await ask('[[sandbox tokens=20 reasoning=4]]', { stream: true });
    expect(stream).toMatchObject({ status: 200, end: 'clean', trailers: { 'x-tinfoil-usage-metrics': told } });
    expect(stream.headers['x-tinfoil-usage-metrics']).toBeUndefined();
    expect(await billed()).toEqual([`${MODEL}: ${told}`, `${MODEL}: ${told}`]);
    for (const each of [true, false]) {
      const { headers, trailers } = await ask('', { stream: each, usage: false });
      expect({ ...headers, ...trailers }).not.toHaveProperty('x-tinfoil-usage-metrics');
    }
  });

  test('sends each event of a stream as a frame, and a long response in frames of 64 KiB', async () => {
    const { text, sizes } = await ask('[[sandbox tokens=10 chunks=10]]', { stream: true });
    const events = text.split(/(?<=\n\n)/);
    expect(events).toHaveLength(1 + 10 + 2);
    expect(sizes).toEqual(events.map((event) => Buffer.byteLength(event) + 16));
    const long = await ask('[[sandbox tokens=32000]]');
    expect(long.sizes.length).toBeGreaterThan(1);
    expect(long.sizes.slice(0, -1).every((size) => size === 65_552)).toBe(true);
  });

  test('generates several choices only in a stream', async () => {
    const { status, text } = await ask('[[sandbox tokens=3]]', { more: { n: 2 } });
    expect([status, JSON.parse(text).error.param]).toEqual([400, 'n']);
    expect((await ask('[[sandbox tokens=3]]', { more: { n: 2, stream: true } })).status).toBe(200);
  });

  test('returns tool calls', async () => {
    const tool = { type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } };
    const { text } = await ask('[[sandbox tool=look_up]]', { more: { tools: [tool] } });
    expect(JSON.parse(text).choices[0].message.tool_calls[0].function).toEqual({ name: 'look_up', arguments: '{}' });
  });

  test('encrypts its errors, and serves only its own model', async () => {
    const errors = [
      await ask('', { model: 'kimi-k3' }),
      await ask('[[sandbox fault=400]]'),
      await ask('[[sandbox nonsense]]'),
      await ask('', { more: { messages: [] } }),
    ];
    for (const { status, nonce, text, wire } of errors) {
      expect([status, nonce]).toEqual([400, expect.stringMatching(/^[0-9a-f]{64}$/)]);
      expect(JSON.parse(text).error).toMatchObject({ type: 'invalid_request_error' });
      expect(Buffer.concat(wire).toString()).not.toContain('error');
    }
    expect((await ask('[[sandbox fault=429]]')).status).toBe(429);
    expect(await billed()).toEqual([]);
    expect((await ask('', { model: 'kimi-k3', at: `${sandbox.url}/enclaves/kimi-k3` })).status).toBe(200);
    expect(await got(`${enclave}/health`)).toEqual({ status: 'ok' });
  });

  test('rejects a body that cannot be decrypted, and a request without a key, with a plaintext response', async () => {
    const { encapsulatedKey, frames } = await sealRequest(await attestedKey(enclave), Buffer.alloc(70_000, ' '));
    const wire = Buffer.concat(frames);
    const sent = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) => {
      const init = { method: 'POST', headers: { authorization: 'Bearer any', ...headers }, body };
      const answer = await fetch(`${enclave}/v1/chat/completions`, init);
      expect(answer.headers.get(RESPONSE_NONCE_HEADER)).toBeNull();
      return [answer.status, await answer.text()];
    };
    const unreadable = [400, 'failed to decrypt request'];
    expect(await sent('{}', {})).toEqual([400, expect.stringContaining('must be encrypted')]);
    expect(await sent('{}', { [ENCAPSULATED_KEY_HEADER]: encapsulatedKey })).toEqual(unreadable);
    expect(await sent(wire, { [ENCAPSULATED_KEY_HEADER]: 'nonsense' })).toEqual(unreadable);
    expect(await sent(wire.subarray(0, -1), { [ENCAPSULATED_KEY_HEADER]: encapsulatedKey })).toEqual(unreadable);
    expect(await sent(wire, { [ENCAPSULATED_KEY_HEADER]: encapsulatedKey, authorization: '' })).toEqual([
      401,
      expect.any(String),
    ]);
  });

  test('rejects a request that is encrypted to another key, after a rotation or a false attestation', async () => {
    const key = new Uint8Array(await (await fetch(`${enclave}/.well-known/hpke-keys`)).arrayBuffer());
    const client = new Transport(await Identity.unmarshalPublicConfig(key), new URL(enclave).host);
    const rotated = await fetch(`${enclave}/rotate`, { method: 'POST' });
    expect(rotated.status).toBe(200);
    const asked = client.post(`${enclave}/v1/chat/completions`, '{}', { headers: { authorization: 'Bearer any' } });
    await expect(asked).rejects.toBeInstanceOf(KeyConfigMismatchError);
    expect((await ask('')).status).toBe(200);
    await fetch(`${enclave}/misattest`, { method: 'POST' });
    const wrong = await ask('');
    expect(wrong).toMatchObject({ status: 422, headers: { 'content-type': 'application/problem+json' } });
    expect(JSON.parse(wrong.text)).toEqual({ type: KEY_CONFIG_PROBLEM, title: expect.any(String) });
    await fetch(`${enclave}/rotate`, { method: 'POST' });
    expect((await ask('')).status).toBe(200);
  });

  test('stops when its client disconnects, and bills only part of the requested output', async () => {
    const sealed = await sealRequest(
      await attestedKey(enclave),
      Buffer.from(
        JSON.stringify({
          model: MODEL,
          stream: true,
          messages: [{ role: 'user', content: '[[sandbox tokens=1000 chunks=1000 chunk_delay=200]]' }],
        }),
      ),
    );
    const { body } = await request(`${enclave}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer any', [ENCAPSULATED_KEY_HEADER]: sealed.encapsulatedKey },
      body: Readable.from(sealed.frames),
    });
    for await (const _ of body) break;
    let lines: readonly string[] = [];
    while (lines.length === 0) lines = await billed();
    expect(Number(/completion=(\d+)/.exec(lines[0] ?? '')?.[1])).toBeLessThan(900);
  });
});

describe('a fault of an enclave', () => {
  const directive = (fault: string) => `[[sandbox tokens=8 chunks=8 fault=${fault}]]`;

  test.each([
    ['cut', 'broken', 5, 4],
    ['cut_frame', 'truncated', 5, 4],
    ['no_done', 'clean', 5, 4],
    ['flipped', 'unauthentic', 5, 8],
    ['replayed', 'unauthentic', 0, 8],
    ['replayed_nonce', 'unauthentic', 0, 8],
  ])('%s: a stream ends %s after %i readable events, and %i tokens are billed', async (fault, end, events, tokens) => {
    await ask('an earlier answer', { stream: true });
    const { status, text, ...answer } = await ask(directive(fault), { stream: true });
    expect([status, answer.end]).toEqual([200, end]);
    expect(text.split('\n\n').length - 1).toBe(events);
    expect(text).not.toContain('[DONE]');
    expect((await billed())[1]).toContain(`completion=${tokens},`);
  });

  test.each([
    ['cut', 'broken', 0],
    ['cut_frame', 'truncated', 0],
    ['no_done', 'clean', 1],
    ['flipped', 'unauthentic', 0],
    ['replayed', 'unauthentic', 0],
    ['replayed_nonce', 'unauthentic', 0],
  ])('%s: a non-streaming response ends %s and is not valid JSON', async (fault, end, something) => {
    await ask('an earlier answer');
    const { status, text, ...answer } = await ask(directive(fault));
    expect([status, answer.end, Math.sign(text.length)]).toEqual([200, end, something]);
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  test('replayed: a response has the nonce and the bytes of an earlier one, or status 400 if none exists', async () => {
    const earlier = await ask('an earlier answer', { stream: true });
    const replayed = await ask(directive('replayed'), { stream: true });
    const { nonce } = await ask(directive('replayed_nonce'), { stream: true });
    expect([replayed.nonce, nonce]).toEqual([earlier.nonce, earlier.nonce]);
    expect(Buffer.concat(replayed.wire).equals(Buffer.concat(earlier.wire))).toBe(true);
    const never = await ask(directive('replayed'), { at: `${sandbox.url}/enclaves/gemma4-31b`, model: 'gemma4-31b' });
    expect(never.status).toBe(400);
  });

  test.each([
    ['overstated', (input: number) => metrics(1_000 * input, 8_000)],
    ['understated', () => metrics(1, 1)],
    ['zero', () => metrics(0, 0)],
    ['no_usage', () => undefined],
  ])('%s: the usage is reported and billed as the fault specifies', async (fault, told) => {
    const { headers } = await ask(directive(fault));
    const { trailers } = await ask(directive(fault), { stream: true });
    const [line = ''] = await billed();
    const input = Number(/prompt=(\d+)/.exec(line)?.[1]);
    expect(headers['x-tinfoil-usage-metrics']).toBe(told(input));
    expect(trailers['x-tinfoil-usage-metrics']).toBe(told(input));
    expect(line).toBe(`${MODEL}: ${fault === 'zero' ? metrics(0, 0) : metrics(input, 8)}`);
  });

  test('plaintext and plaintext_error: a response is not encrypted, and an error repeats the prompt', async () => {
    for (const stream of [true, false]) {
      const plaintext = await ask(directive('plaintext'), { stream });
      expect(plaintext).toMatchObject({ status: 200, nonce: undefined, text: expect.stringContaining('"choices"') });
      const error = await ask(directive('plaintext_error'), { stream });
      expect(error).toMatchObject({ status: 500, nonce: undefined, text: expect.stringContaining(SECRET) });
    }
    expect(await billed()).toHaveLength(2);
  });
});
