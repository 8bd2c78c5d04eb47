/** Runs against an independent server with the S3 API. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { FileStoreUnavailableError, generateFileId } from '#application';
import { nodeRandomness } from '#runtime';
import { fileStoreContract, openS3Server, type S3Server } from '#testing';
import type { S3Options } from './s3-bucket.ts';
import { S3Files } from './s3-files.ts';

const BUCKETS = 40;
/** The minimum part size of S3. */
const PART_BYTES = 5 * 1024 * 1024;

let server: S3Server;
let client: S3Client;
const stores: S3Files[] = [];
beforeAll(async () => {
  server = await openS3Server(Array.from({ length: BUCKETS }, (_, i) => `bucket-${i}`));
  const { endpoint, credentials } = server;
  client = new S3Client({ endpoint, credentials, region: 'us-east-1', forcePathStyle: true });
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  client.destroy();
  await server.close();
});

async function open(more: Partial<S3Options> = {}): Promise<S3Files> {
  const bucket = `bucket-${stores.length}`;
  const store = await S3Files.open({ ...server, region: 'us-east-1', bucket, partBytes: PART_BYTES, ...more });
  stores.push(store);
  return store;
}

fileStoreContract('S3Files', async () => {
  const Bucket = `bucket-${stores.length}`;
  const leftovers = async () => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
    return Contents.map(({ Key = '' }) => Key);
  };
  return { store: await open(), listLeftovers: leftovers };
});

test('a file that is larger than one part is stored and read completely', async () => {
  const store = await open();
  const id = generateFileId(nodeRandomness, 'gen', 0);
  const pieces = Array.from({ length: 6 }, (_, i) => Buffer.alloc(1_000_000, i));
  const bytes = (async function* () {
    yield* pieces;
  })();
  expect(await store.save({ id, n: 0, mediaType: 'video/mp4', bytes })).toBe(6_000_000);
  const found = await store.find({ id, n: 0 });
  expect(found).toMatchObject({ mediaType: 'video/mp4', size: 6_000_000 });
  const read: Uint8Array[] = [];
  for await (const piece of found?.read() ?? []) read.push(piece);
  expect(Buffer.concat(read).equals(Buffer.concat(pieces))).toBe(true);
});

test('the key of an object starts with its expiry hour', async () => {
  const bucket = `bucket-${stores.length}`;
  const store = await open();
  const id = generateFileId(nodeRandomness, 'gen', Date.parse('2026-11-22T13:10:00Z'));
  await store.save({ id, n: 0, mediaType: 'image/webp', bytes: Buffer.from('abc') });
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
  expect(Contents).toMatchObject([{ Key: `2026-11-22T14/${id}/0`, Size: 3 }]);
});

test.each<[string, Partial<S3Options>]>([
  ['a bucket that does not exist', { bucket: 'nobodys' }],
  ['an unknown access key', { credentials: { accessKeyId: 'nobody', secretAccessKey: 'x' } }],
  ['an unreachable service', { endpoint: 'http://127.0.0.1:1' }],
])('%s is rejected at the start', async (_, wrong) => {
  await expect(open(wrong)).rejects.toThrow(FileStoreUnavailableError);
});

test('objects whose keys do not start with an hour are not removed', async () => {
  const bucket = `bucket-${stores.length}`;
  const store = await open();
  await client.send(new PutObjectCommand({ Bucket: bucket, Key: '1/notes.txt', Body: 'mine' }));
  await client.send(new PutObjectCommand({ Bucket: bucket, Key: 'notes.txt', Body: 'mine' }));
  await store.save({
    id: generateFileId(nodeRandomness, 'gen', 0),
    n: 0,
    mediaType: 'image/webp',
    bytes: Buffer.from('abc'),
  });
  expect(await store.removeExpired(Date.now())).toBe(1);
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
  expect(Contents.map(({ Key }) => Key)).toEqual(['1/notes.txt', 'notes.txt']);
});

test('uses replaced credentials from the next request on', async () => {
  const rejected = { accessKeyId: 'unknown', secretAccessKey: 'unknown' };
  const credentials = { ...server.credentials };
  const store = await open({ credentials });
  const name = { id: generateFileId(nodeRandomness, 'gen', 0), n: 0 };

  Object.assign(credentials, rejected);
  const whileRejected = store.find(name);
  await expect(whileRejected).rejects.toThrow(FileStoreUnavailableError);
  Object.assign(credentials, server.credentials);

  expect(await store.find(name)).toBeUndefined();
});

test('an upload whose source fails throws the error of the source, even if the upload cannot be aborted', async () => {
  const requests: string[] = [];
  const service = createServer((request, response) => {
    request.resume();
    requests.push(`${request.method} ${request.url?.replace(/^.*\?/, '')}`);
    if (request.method === 'DELETE') response.writeHead(403).end();
    else if (request.method === 'POST')
      response.end('<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>');
    else request.on('end', () => response.writeHead(200, { etag: '"1"' }).end());
  });
  await once(service.listen(0, '127.0.0.1'), 'listening');
  const { port } = service.address() as AddressInfo;
  const store = await open({ endpoint: `http://127.0.0.1:${port}` });
  const bytes = (async function* () {
    yield Buffer.alloc(PART_BYTES + 1);
    throw new Error('the source failed');
  })();
  const saving = store.save({ id: generateFileId(nodeRandomness, 'gen', 0), n: 0, mediaType: 'video/mp4', bytes });
  await expect(saving).rejects.toThrow('the source failed');
  expect(requests.at(-1)).toMatch(/^DELETE uploadId=1/);
  service.close();
});
