/** A server that speaks S3, on a directory of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** s3rver, as far as it is used here: it has no types. */
interface S3rver {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
}
type S3rverClass = new (options: object) => S3rver;

export interface S3Server {
  readonly endpoint: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  close(): Promise<void>;
}

/** @param buckets the names of those that it has */
export async function openS3(buckets: readonly string[]): Promise<S3Server> {
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
