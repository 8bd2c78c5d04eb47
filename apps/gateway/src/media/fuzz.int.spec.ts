/**
 * Random POST requests for images, videos and audio. Every status is documented, and none is 500. An error costs
 * nothing, which is checked if no money was held before the request. No hold and no uploaded file remains at the end.
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PIXEL, sampleSize, type TestAccount, type TestResponse, TestWorld } from '#testing';
import { Uploads } from '../edge/uploads/uploads.ts';
import type { OpenApiDocument, PathOperation } from '../openapi/document.ts';
import type { JsonSchema } from '../openapi/operation.ts';

const SEED = 20_261_122;
const MEDIA = /^\/v1\/(images|videos|audio)\//;

interface Route {
  readonly path: string;
  readonly operation: PathOperation;
}

let world: TestWorld;
let account: TestAccount;
let document: OpenApiDocument;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  account = await world.createAccount(105);
  document = (await world.get('/openapi.json')).body;
});
afterAll(() => world.close());

function routes(type: string): readonly Route[] {
  return Object.entries(document.paths).flatMap(([at, { post }]) => {
    const isWanted = post?.requestBody?.content[type] && MEDIA.test(`${at}/`) && !post['x-alias-of'];
    return isWanted ? [{ path: at, operation: post }] : [];
  });
}

/** Returns the field names of a body and its documented example. */
function contentOf({ operation }: Route, type: string) {
  const { schema = {}, example = {} } = operation.requestBody?.content[type] ?? {};
  const { properties = {} } = document.components.schemas[String(schema.$ref).split('/').at(-1) ?? ''] ?? {};
  return { names: Object.keys(properties as JsonSchema), example: example as Readonly<Record<string, string>> };
}

const TEXTS = [
  '',
  ' ',
  '0',
  '-1',
  '1e999',
  'null',
  '1:1',
  '9999x9999',
  '\0',
  '\ud800',
  '__proto__',
  '[[sandbox fault=400]]',
  'http://127.0.0.1/',
  'http://[::1]:22/',
  'https://169.254.169.254/latest/',
  'file:///etc/passwd',
  'x:y',
  'data:image/png;base64,AAAA',
  'data:image/svg+xml;base64,PHN2Zy8+',
  `data:image/png;base64,${PIXEL.toString('base64')}`,
];
const odd = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<unknown>(...TEXTS) },
  { weight: 2, arbitrary: fc.constantFrom<unknown>(null, true, 0, -1, 0.5, 1e308, [], {}, [[]], ['a'], { a: 1 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>('x'.repeat(70_000), '🎉'.repeat(10_000)) },
);

/** Generates the fields of an example, some of them changed, omitted, added or repeated. */
function spoilt(names: readonly string[], example: object): fc.Arbitrary<readonly (readonly [string, unknown])[]> {
  const name = fc.constantFrom(...names, 'unknown', 'constructor', '__proto__', 'image[]', '');
  return fc
    .tuple(
      fc.oneof(fc.constant(Object.entries(example)), fc.subarray(Object.entries(example))),
      fc.array(fc.tuple(name, odd), { maxLength: 3 }),
      fc.nat(5).map((n) => n === 0),
    )
    .map(([kept, changed, twice]) =>
      twice ? [...kept, ...changed] : [...new Map<string, unknown>([...kept, ...changed])],
    );
}

/** A WAV file of one second with zeros only. */
const SILENCE = Buffer.concat([
  Buffer.from(
    'RIFF\xa4\x3e\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x80\x3e\0\0',
    'latin1',
  ),
  Buffer.alloc(16_000),
]);
const FILES = [
  PIXEL,
  PIXEL.subarray(0, 20),
  Buffer.alloc(0),
  Buffer.alloc(100_000),
  Buffer.from('<svg/>'),
  Buffer.from('%PDF-1.7'),
  Buffer.from('RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0', 'latin1'),
  Buffer.from('ID3\x04\0\0\0\0\0\0\xff\xfb', 'latin1'),
  Buffer.from('\0\0\0\x18ftypisom\0\0\0\0isomavc1', 'latin1'),
];
const file = fc.tuple(
  fc.oneof(fc.constantFrom(PIXEL, SILENCE), fc.constantFrom(...FILES)),
  fc.constantFrom('a.png', '', '../../x', 'a\0b', '🎉.mp3', 'a"b.wav'),
);

const BOUNDARY = 'boundary';

/** Serialises a form, including names, file names and values that `FormData` would change. */
function written(parts: readonly (readonly [string, unknown])[]): Buffer {
  const pieces = parts.flatMap(([name, value]) => {
    const [bytes, filename] = Array.isArray(value) && value[0] instanceof Uint8Array ? value : [asText(value)];
    const called = filename === undefined ? '' : `; filename="${filename}"`;
    const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${called}\r\n\r\n`;
    return [Buffer.from(head), Buffer.from(bytes as Uint8Array), Buffer.from('\r\n')];
  });
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

function asText(value: unknown): Buffer {
  return Buffer.from(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
}

function forms(route: Route): fc.Arbitrary<Buffer> {
  const { names, example } = contentOf(route, 'multipart/form-data');
  const isFile = (name: string) => String(example[name]).startsWith('@') || name === 'mask';
  const fields = spoilt(
    names.filter((name) => !isFile(name)),
    Object.fromEntries(Object.entries(example).filter(([name]) => !isFile(name))),
  );
  const fileName = fc.constantFrom(...names.filter(isFile), ...names.filter(isFile), 'other');
  const files = fc.array(fc.tuple(fileName, file), { maxLength: 3 });
  const whole = fc
    .tuple(fields, files, fc.boolean())
    .map(([some, others, first]) => written(first ? [...others, ...some] : [...some, ...others]));
  const cut = fc.tuple(whole, fc.nat(500)).map(([body, at]) => body.subarray(0, Math.max(0, body.length - at)));
  const broken = fc.tuple(whole, fc.nat(400), fc.uint8Array({ maxLength: 8 })).map(([body, at, bytes]) => {
    const copy = Buffer.from(body);
    copy.set(bytes.subarray(0, Math.max(0, copy.length - at)), Math.min(at, copy.length));
    return copy;
  });
  return fc.oneof({ weight: 5, arbitrary: whole }, { weight: 1, arbitrary: cut }, { weight: 1, arbitrary: broken });
}

async function send({ path: at, operation }: Route, type: string, body: string | Buffer): Promise<number> {
  const headers = { authorization: `Bearer ${account.apiKey}`, 'content-type': type };
  const before = await money();
  const answer = await world.send('POST', at, { headers, body: body as string });
  expectDecent(answer, operation);
  // While money is held, the balance may change: a video in progress may fail and release its hold.
  if (answer.status >= 400 && before.held_usd === 0) expect(await money()).toEqual(before);
  return answer.status;
}

function expectDecent({ status, text, body }: TestResponse, { operationId, responses }: PathOperation): void {
  const about = `${operationId} ${status} ${text.slice(0, 300)}`;
  expect([about, Object.keys(responses)]).toEqual([about, expect.arrayContaining([String(status)])]);
  expect([about, status === 500]).toEqual([about, false]);
  if (status >= 400)
    expect([about, body]).toEqual([about, expect.objectContaining({ status: 'error', statusCode: status })]);
}

const money = async () => (await world.post('/credits/balance', undefined, account)).body;

/** Waits until no money is held and no uploaded file remains. */
async function expectNothingLeft(): Promise<void> {
  await world.waitUntil(async () => (await money()).held_usd === 0);
  const uploads = path.join(world.foundation.settings.dataDir, 'uploads');
  const lying = async () =>
    (await Promise.all((await readdir(uploads)).map((each) => readdir(path.join(uploads, each))))).flat();
  await world.waitUntil(async () => world.getService(Uploads).usedBytes === 0 && (await lying()).length === 0);
}

const createOptions = (numRuns: number) => ({ numRuns: sampleSize(35, numRuns), seed: SEED, endOnFailure: true });

test('responds to random JSON bodies with documented statuses, and leaves no hold or uploaded file', async () => {
  const seen = new Set<number>();
  const all = routes('application/json');
  expect(all.length).toBeGreaterThan(0);
  for (const route of all) {
    const { names, example } = contentOf(route, 'application/json');
    const body = spoilt(names, example).map((fields) => JSON.stringify(Object.fromEntries(fields)));
    await fc.assert(
      fc.asyncProperty(body, async (each) => void seen.add(await send(route, 'application/json', each))),
      createOptions(5),
    );
  }
  expect([...seen]).toEqual(expect.arrayContaining([200, 400]));
  await expectNothingLeft();
});

test('responds to random forms with documented statuses, and leaves no hold or uploaded file', async () => {
  const seen = new Set<number>();
  const all = routes('multipart/form-data');
  expect(all.length).toBeGreaterThan(0);
  const type = `multipart/form-data; boundary=${BOUNDARY}`;
  for (const route of all) {
    await fc.assert(
      fc.asyncProperty(forms(route), async (body) => void seen.add(await send(route, type, body))),
      createOptions(10),
    );
  }
  expect([...seen]).toEqual(expect.arrayContaining([200, 400]));
  await expectNothingLeft();
});
