/** Bodies with files: what is accepted, what is rejected, and that no file remains. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { IsOptional, IsString } from 'class-validator';
import fc from 'fast-check';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { HeavyWorkQueue } from '#application';
import { createTestRuntime, PIXEL, sampleSize } from '#testing';
import { INTERNAL_ERROR, sendError, toErrorResponse } from '../errors/errors.ts';
import { BodyParser } from '../validation/body-parser.ts';
import { IsPositiveInteger, ValidationPipe } from '../validation/validation.ts';
import { parseMultipart } from './multipart.ts';
import { Upload, type UploadOptions } from './upload.ts';
import { Uploads } from './uploads.ts';

const MAX = 100_000;
/** Disk space for all uploads. One account may use half of that. */
const SPOOL = 6 * MAX;

let root: string;
let uploads: Uploads;
let server: FastifyInstance;
let url: string;
let serve: (request: FastifyRequest) => Promise<unknown>;
const alarms: string[] = [];

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'countinghouse-uploads-'));
  const isFunded = async (accountId: string) => accountId !== 'penniless';
  uploads = await Uploads.open({
    directory: root,
    maxBytes: SPOOL,
    isFunded,
    reportError: (problem) => alarms.push(problem),
  });
  server = fastify({ forceCloseConnections: true });
  const bodies = new BodyParser({
    maxBytes: 1024 * 1024 ** 2,
    heavyWork: new HeavyWorkQueue(createTestRuntime()),
    isFunded,
  });
  bodies.registerParsers(server);
  server.decorateRequest('caller', null as never);
  server.addHook('onRequest', (request, _, done) => {
    request.caller = { accountId: String(request.headers['x-credit-id']), keyId: null };
    done();
  });
  server.addHook('onRoute', (route) => {
    route.bodyLimit = 4 * MAX + 1024 * 1024;
  });
  bodies.registerBodyLimits(server);
  uploads.registerParser(server);
  server.setErrorHandler((error, _, reply) => sendError(reply, toErrorResponse(error) ?? INTERNAL_ERROR));
  const take = (at: string, upload?: UploadOptions) =>
    server.post(at, { config: { operation: { upload } as never } }, async (request) => (await serve(request)) ?? 'ok');
  take('/file', { maxBytes: MAX, files: ['file'] });
  take('/edit', { maxBytes: MAX, files: ['image', 'mask'], optional: ['mask'], maxFiles: 3 });
  take('/json');
  url = await server.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(async () => {
  await server.close();
  await uploads.close();
  expect(await readdir(root)).toEqual([]);
  await rm(root, { recursive: true });
});
beforeEach(() => {
  serve = async ({ body }) => body;
});

/** Files that are currently stored. */
async function lying(): Promise<readonly string[]> {
  const [own = ''] = await readdir(root);
  return readdir(path.join(root, own));
}

async function until(happened: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await happened())) await new Promise(setImmediate);
}

const nothingLies = async () => until(async () => (await lying()).length === 0 && uploads.usedBytes === 0);

type Answered = { readonly message: string };

async function post(body: string | FormData | Uint8Array, headers: Record<string, string> = {}, at = '/file') {
  const answer = await fetch(`${url}${at}`, { method: 'POST', body: body as never, headers });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text.startsWith('{') ? JSON.parse(text) : text };
}

function form(...parts: readonly (readonly [name: string, value: string | Uint8Array, filename?: string])[]): FormData {
  const all = new FormData();
  for (const [name, value, filename] of parts) {
    if (typeof value === 'string') all.append(name, value);
    else all.append(name, new File([value as never], filename ?? 'a.bin'));
  }
  return all;
}

/** Sends a body as raw bytes, which may be invalid. */
const raw = (text: string, boundary = 'x') =>
  post(text.replaceAll('\n', '\r\n'), { 'content-type': `multipart/form-data; boundary=${boundary}` });

describe('an upload', () => {
  test('provides its fields, and its files with the media type of their content', async () => {
    let files: Upload['files'] = [];
    serve = async ({ body }) => {
      const upload = body as Upload;
      files = upload.files;
      expect(await readFile(files[0]?.path ?? '')).toEqual(PIXEL);
      expect((await stat(files[0]?.path ?? '')).mode & 0o777).toBe(0o600);
      return { fields: upload.fields };
    };
    const parts = form(
      ['model', 'm'],
      ['prompt', 'Grüße\r\n🎉'],
      ['file', PIXEL, 'C:\\a/b/../song.mp3'],
      ['__proto__', 'x'],
    );
    parts.append('timestamp_granularities[]', 'word');
    parts.append('timestamp_granularities[]', 'segment');
    const { status, body } = await post(parts);
    expect(status).toBe(200);
    expect(Object.entries(body.fields)).toEqual([
      ['model', 'm'],
      ['prompt', 'Grüße\r\n🎉'],
      ['__proto__', 'x'],
      ['timestamp_granularities', ['word', 'segment']],
    ]);
    const sha256 = createHash('sha256').update(PIXEL).digest('hex');
    const file = { field: 'file', filename: 'song.mp3', mediaType: 'image/png', size: PIXEL.length, sha256 };
    expect(files).toEqual([{ ...file, path: expect.stringContaining(root) }]);
    await nothingLies();
  });

  test('may have several files in one field, with or without brackets in its name, and be compressed', async () => {
    serve = async ({ body }) => ({ files: (body as Upload).files.map(({ field, size }) => [field, size]) });
    const parts = form(['image[]', PIXEL], ['image', Buffer.alloc(MAX)], ['mask', PIXEL]);
    const { body } = await post(parts, {}, '/edit');
    expect(body.files).toEqual([
      ['image', PIXEL.length],
      ['image', MAX],
      ['mask', PIXEL.length],
    ]);
    const response = new Response(form(['image', PIXEL]));
    const packed = gzipSync(Buffer.from(await response.arrayBuffer()));
    const headers = { 'content-type': response.headers.get('content-type') ?? '', 'content-encoding': 'gzip' };
    expect((await post(packed, headers, '/edit')).body.files).toEqual([['image', PIXEL.length]]);
    await nothingLies();
  });

  test('is identified by its fields and the content of its files, but not by their file names', async () => {
    serve = async ({ body }) => JSON.stringify(body);
    const one = await post(form(['model', 'm'], ['file', PIXEL, 'a.png']));
    expect((await post(form(['model', 'm'], ['file', PIXEL, 'b.png']))).body).toEqual(one.body);
    expect((await post(form(['model', 'm'], ['file', Buffer.from('other')]))).body).not.toEqual(one.body);
    expect((await post(form(['model', 'n'], ['file', PIXEL]))).body).not.toEqual(one.body);
  });

  class Wanted {
    @IsOptional()
    @IsPositiveInteger(4)
    n?: number;

    @IsOptional()
    @IsString({ message: 'prompt must be a string' })
    prompt?: string;
  }

  test('has its fields validated like those of JSON, with numbers converted', () => {
    const check = (fields: Upload['fields']) =>
      new ValidationPipe().transform(new Upload(fields, [], () => {}), { type: 'body', metatype: Wanted });
    expect(check({ n: '3', prompt: '7', other: '1' })).toEqual({ n: 3, prompt: '7', other: '1' });
    for (const n of ['5', '0', 'x', '', '1e0', '0x1']) expect(() => check({ n })).toThrow(/^n must be/);
    expect(() => check({ prompt: ['a'] })).toThrow('prompt must be a string');
  });

  test('retains its files while they are in use, even after the client has disconnected', async () => {
    const begun = Promise.withResolvers<string>();
    const go = Promise.withResolvers<void>();
    const read = Promise.withResolvers<string>();
    serve = ({ body }) =>
      (body as Upload).retainWhile(async () => {
        const [file] = (body as Upload).files;
        begun.resolve(file?.path ?? '');
        await go.promise;
        read.resolve(String(await readFile(file?.path ?? '')));
      });
    const leaving = new AbortController();
    const asked = fetch(`${url}/file`, {
      method: 'POST',
      body: form(['file', Buffer.from('abc')]),
      signal: leaving.signal,
    });
    const file = await begun.promise;
    leaving.abort();
    await asked.catch(() => {});
    expect(existsSync(file)).toBe(true);
    go.resolve();
    expect(await read.promise).toBe('abc');
    await nothingLies();
  });
});

describe('an upload is rejected, and no file of it remains, for', () => {
  const PART = '--x\nContent-Disposition: form-data; name="file"; filename="a"\n\nabc\n';
  const field = (name: string, value: string) => `--x\nContent-Disposition: form-data; name="${name}"\n\n${value}\n`;

  test.each<[string, number, RegExp, () => Promise<{ status: number; body: Answered }>]>([
    ['another type', 415, /must be multipart\/form-data/, () => post('{}', { 'content-type': 'application/json' })],
    ['a form if JSON is required', 415, /must be application\/json/, () => post(form(['a', 'b']), {}, '/json')],
    [
      'a form without a boundary',
      400,
      /not valid multipart/,
      () => post('x', { 'content-type': 'multipart/form-data' }),
    ],
    ['a boundary that is too long', 400, /not valid multipart/, () => raw(PART, 'x'.repeat(300))],
    ['an empty body', 400, /not valid multipart|missing/, () => raw('')],
    ['no parts', 400, /file is missing/, () => raw('--x--\n')],
    ['a body that is not a form', 400, /not valid multipart/, () => raw('{"a":1}')],
    ['a form without an end', 400, /not valid multipart/, () => raw(PART)],
    [
      'a form that ends within a head',
      400,
      /not valid multipart/,
      () => raw(`${PART}--x\nContent-Disposition: form-d`),
    ],
    ['a part without a name', 400, /no name/, () => raw('--x\nContent-Disposition: form-data\n\nabc\n--x--\n')],
    ['a name that is too long', 400, /Names of fields/, () => raw(`${field('n'.repeat(300), 'a')}${PART}--x--\n`)],
    [
      'a field that is sent twice',
      400,
      /a must be sent only once/,
      () => post(form(['a', '1'], ['a', '2'], ['file', PIXEL])),
    ],
    ['no file', 400, /file is missing/, () => post(form(['model', 'm']))],
    ['a file in another field', 400, /file is missing/, () => post(form(['audio', PIXEL]))],
    ['a form without a chosen file', 400, /file is missing/, () => post(form(['file', Buffer.alloc(0), '']))],
    ['too many files', 400, /at most 1 files/, () => post(form(['file', PIXEL], ['file', PIXEL]))],
    [
      'too many fields',
      400,
      /at most 64 fields/,
      () => post(form(...Array.from({ length: 65 }, (_, i) => [`f${i}`, ''] as const), ['file', PIXEL])),
    ],
    [
      'too many parts',
      400,
      /at most 100 parts/,
      () => post(form(...Array.from({ length: 101 }, () => ['other', PIXEL] as const))),
    ],
    ['a field that is too long', 400, /a must have at most/, () => post(form(['a', 'x'.repeat(300_000)]))],
    [
      'a file that is too large',
      413,
      /file must have at most 100000 bytes/,
      () => post(form(['file', Buffer.alloc(MAX + 1)])),
    ],
    [
      'a second file that is too large',
      413,
      /mask must have/,
      () => post(form(['image', PIXEL], ['mask', Buffer.alloc(MAX + 1)]), {}, '/edit'),
    ],
  ])('%s', async (_, status, message, send) => {
    const { status: answered, body } = await send();
    expect([answered, body.message]).toEqual([status, expect.stringMatching(message)]);
    await nothingLies();
  });

  test('a body that is far too large, while its client continues to send', async () => {
    const { status, body } = await post(form(['file', Buffer.alloc(30_000_000)]));
    expect([status, body.message]).toEqual([413, expect.stringMatching(/at most/)]);
    await nothingLies();
  });

  test('a file of an account that was never credited', async () => {
    const sent = await post(form(['file', Buffer.alloc(MAX)]), { 'x-credit-id': 'penniless' });
    expect(sent).toMatchObject({ status: 402, body: { error: { type: 'insufficient_balance' } } });
    expect(uploads.usedBytes).toBe(0);
  });

  test('a body that is too large, before it has arrived', async () => {
    const { socket, said } = dial();
    socket.write(head(50_000_000));
    expect(await said(/\r\n\r\n/)).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
    await nothingLies();
  });

  test('a file that cannot be written, which may be sent again later', async () => {
    const [own = ''] = await readdir(root);
    await rm(path.join(root, own), { recursive: true });
    const { status, headers } = await post(form(['file', PIXEL]));
    expect([status, headers.get('retry-after')]).toEqual([503, '5']);
    expect(alarms.splice(0)).toEqual(['an uploaded file could not be written']);
    await mkdir(path.join(root, own), { mode: 0o700 });
    expect((await post(form(['file', PIXEL]))).status).toBe(200);
    await nothingLies();
  });

  test('files above the limit of one account or of all accounts, which may be sent again later', async () => {
    const go = Promise.withResolvers<void>();
    let serving = 0;
    serve = ({ body }) =>
      (body as Upload).retainWhile(async () => {
        serving += 1;
        await go.promise;
      });
    const large = (account = 'one') => post(form(['file', Buffer.alloc(MAX)]), { 'x-credit-id': account });
    const sent = [large(), large(), large()];
    await until(() => serving === 3);
    const { status, headers } = await large();
    expect([status, headers.get('retry-after')]).toEqual([503, '5']);
    sent.push(large('two'), large('two'), large('three'));
    await until(() => serving === 6);
    expect((await large('four')).status).toBe(503);
    go.resolve();
    expect((await Promise.all(sent)).map((each) => each.status)).toEqual(Array(6).fill(200));
    await nothingLies();
    expect((await large()).status).toBe(200);
    await nothingLies();
  });
});

const head = (length: number) =>
  `POST /file HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: ${length}\r\n\r\n`;
const BEGIN = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';

function dial(): { socket: Socket; said(pattern: RegExp): Promise<string> } {
  const { hostname: host, port } = new URL(url);
  const socket = connect(Number(port), host);
  let text = '';
  socket.on('data', (piece) => {
    text += piece;
  });
  const said = async (pattern: RegExp) => {
    await until(() => pattern.test(text));
    return text;
  };
  return { socket, said };
}

describe('after an interruption,', () => {
  test('no file remains of a body that ends early', async () => {
    const { socket } = dial();
    socket.write(head(90_000) + BEGIN + 'x'.repeat(1_000));
    await until(async () => (await lying()).length === 1);
    socket.destroy();
    await nothingLies();
  });

  test('a body that stops arriving is rejected with 408', async () => {
    const { PassThrough } = await import('node:stream');
    const payload = new PassThrough();
    payload.write(BEGIN);
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const notes = { maxBytes: MAX, files: ['file'] };
    const keep = async ({ bytes }: { bytes: AsyncIterable<unknown> }) => {
      for await (const _ of bytes);
    };
    const read = parseMultipart({
      payload,
      headers,
      maxBytes: MAX,
      options: notes,
      storeFile: keep as never,
      maxIdleMs: 20,
    });
    await expect(read).rejects.toMatchObject({ statusCode: 408 });
  });

  test('directories of processes that have ended are removed, but no others', async () => {
    const uuid = '00000000-0000-4000-8000-000000000000';
    const own = await readdir(root);
    const make = async (name: string, minutes = 0) => {
      await mkdir(path.join(root, name, 'x'), { recursive: true });
      const then = new Date(Date.now() - minutes * 60_000);
      await utimes(path.join(root, name), then, then);
    };
    await make(`${hostname()}.${process.pid}.${uuid}`);
    await make(`${hostname()}.4194305.${uuid}`);
    await make(`${hostname()}.1.${uuid}`);
    await make(`elsewhere.1.${uuid}`);
    await make(`long-ago.1.${uuid}`, 16);
    await make('something-else', 1_000);
    const again = await Uploads.open({
      directory: root,
      maxBytes: SPOOL,
      isFunded: async () => true,
      reportError: () => {},
    });
    await again.close();
    const left = [`${hostname()}.1.${uuid}`, `elsewhere.1.${uuid}`, 'something-else'];
    expect((await readdir(root)).toSorted()).toEqual([...own, ...left].toSorted());
    for (const name of left) await rm(path.join(root, name), { recursive: true });
  });
});

test('responds with 200 or 400 to any body that is sent as a form, and no file remains', async () => {
  const line = fc.constantFrom(
    '--x',
    '--x--',
    '',
    'Content-Disposition: form-data; name="file"; filename="a"',
    'abc',
    '\0',
    '--',
    '--x\0',
    'Content-Disposition: form-data; name="a"',
    'Content-Disposition: form-data; name=""; filename=""',
    ':',
    ' : ',
    'Content-Type: text/plain; charset=utf-16',
    'Content-Type: x; charset=nope',
    'Content-Disposition: attachment',
    "Content-Disposition: form-data; name*=utf-8''%ff; filename*=x''%",
    'Content-Transfer-Encoding: base64',
    '\ud800',
  );
  const body = fc
    .array(line, { maxLength: 14 })
    .chain((lines) => fc.constantFrom('\r\n', '\r\n', '\r\n', '\n').map((end) => ['--x', ...lines].join(end)));
  const ends = fc.constantFrom('', '\r\n--x--', '\r\n--x--\r\nmore');
  await fc.assert(
    fc.asyncProperty(body, ends, fc.constantFrom('/file', '/edit'), async (begin, end, at) => {
      const answer = await post(begin + end, { 'content-type': 'multipart/form-data; boundary=x' }, at);
      expect([200, 400]).toContain(answer.status);
    }),
    { numRuns: sampleSize(300, 60), seed: 20_261_122, endOnFailure: true },
  );
  await nothingLies();
  expect(alarms).toEqual([]);
});
