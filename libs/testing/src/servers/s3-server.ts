/** An S3 server for tests: s3rver with its own directory, or the server in `S3_TEST_SERVER`, which a proof sets. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';

/** The used part of s3rver, which has no types. */
interface S3rver {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
}
type S3rverClass = new (options: object) => S3rver;

interface S3Connection {
  readonly endpoint: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

export interface S3Server extends S3Connection {
  close(): Promise<void>;
}

/** @param buckets names of the buckets to create */
export async function openS3Server(buckets: readonly string[]): Promise<S3Server> {
  const { S3_TEST_SERVER: externalServer } = process.env;
  return externalServer === undefined ? startOwnServer(buckets) : createBuckets(JSON.parse(externalServer), buckets);
}

async function createBuckets(connection: S3Connection, buckets: readonly string[]): Promise<S3Server> {
  const client = new S3Client({ ...connection, region: 'us-east-1', forcePathStyle: true });
  for (const Bucket of buckets) await client.send(new CreateBucketCommand({ Bucket }));
  client.destroy();
  return { ...connection, close: async () => {} };
}

async function startOwnServer(buckets: readonly string[]): Promise<S3Server> {
  const S3rver: S3rverClass = createRequire(import.meta.url)('s3rver');
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-s3-'));
  const configureBuckets = buckets.map((name) => ({ name }));
  const server = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory, configureBuckets });
  const { port } = await server.run();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    async close() {
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}
