/**
 * `npm run prove:files`: runs the contract of file stores against an independent S3 server (versitygw, which is built
 * with modules of the Go module proxy), serves an image of an installation from there, and fills up a disk (as root).
 */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { FileStoreUnavailableError, generateFileId } from '#application';
import { LocalFiles } from '#connectors';
import { nodeRandomness } from '#runtime';
import { ProofCluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { runCommand } from './clients/run.ts';
import { startVersityGw, VERSITYGW_VERSION } from './versitygw.ts';

const PORT = 7_391;
const WITHIN_MS = 120_000;
const BUCKET = 'product';
const credentials = { accessKeyId: 'proof', secretAccessKey: 'proof-secret' };
const endpoint = `http://127.0.0.1:${PORT}`;

let failed = 0;

function check(holds: boolean, line: string): void {
  process.stdout.write(`${holds ? 'passes' : 'FAILS '} ${line}\n`);
  if (!holds) failed++;
}

async function checkContract(): Promise<void> {
  const env = { ...process.env, S3_TEST_SERVER: JSON.stringify({ endpoint, credentials }) } as Record<string, string>;
  const command = ['npx', '--no-install', 'jest', 'libs/connectors/src/files/s3-files.int.spec.ts', '--maxWorkers=1'];
  const { code, output } = await runCommand(command, { cwd: root, env, timeoutMs: WITHIN_MS });
  check(
    code === 0,
    `the contract of file stores with versitygw ${VERSITYGW_VERSION}: ${/Tests: .*/.exec(output)?.[0]}`,
  );
  if (code !== 0) process.stdout.write(output.slice(-4_000));
}

async function checkServing(directory: string): Promise<void> {
  const settings = {
    S3_ENDPOINT: endpoint,
    S3_BUCKET: BUCKET,
    S3_ACCESS_KEY_ID: credentials.accessKeyId,
    S3_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  const cluster = await ProofCluster.start(directory, 1, settings);
  try {
    const [api = ''] = cluster.gateways;
    const { apiKey } = await cluster.createCustomer(10);
    const response = await fetch(`${api}/v1/images/generations`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: 'black-forest-labs/flux-1-schnell', prompt: 'A counting house' }),
    });
    const { data } = (await response.json()) as { data: readonly [{ url: string }] };
    const file = await fetch(data[0].url);
    const bytes = Buffer.from(await file.arrayBuffer());
    check(file.status === 200 && bytes.length > 0, `an image of ${bytes.length} bytes is served from the bucket`);
    const part = await fetch(data[0].url, { headers: { range: 'bytes=0-9' } });
    const ten = Buffer.from(await part.arrayBuffer());
    check(
      part.status === 206 && ten.equals(bytes.subarray(0, 10)),
      'a range request returns the first ten bytes of the image',
    );
    const client = new S3Client({ endpoint, credentials, region: 'us-east-1', forcePathStyle: true });
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
    client.destroy();
    check(Contents.length === 1 && Contents[0]?.Size === bytes.length, 'the image is the only object in the bucket');
  } finally {
    await cluster.stop();
  }
}

/** Fills a disk of 1 MiB. */
async function checkFullDisk(directory: string): Promise<void> {
  const mounted = await runCommand(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory], {
    cwd: root,
    env: {},
    timeoutMs: 5_000,
  });
  if (mounted.code !== 0) return void process.stdout.write('       skipped the full disk: no disk could be mounted\n');
  try {
    const store = await LocalFiles.open(directory);
    const id = generateFileId(nodeRandomness, 'gen', Date.now());
    const storeFile = (n: number, bytes: number) =>
      store.save({ id, n, mediaType: 'image/png', bytes: Buffer.alloc(bytes) }).catch((error: unknown) => error);
    await storeFile(0, 500_000);
    const rejection = await storeFile(1, 2_000_000);
    check(rejection instanceof FileStoreUnavailableError, `a full disk is reported: ${(rejection as Error).message}`);
    const names = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) =>
      entry.isFile(),
    );
    check(names.length === 1 && (await store.find({ id, n: 1 })) === undefined, 'no part of the large file is left');
    check((await storeFile(1, 300_000)) === 300_000, 'a smaller file is stored afterwards');
  } finally {
    await runCommand(['umount', directory], { cwd: root, env: {}, timeoutMs: 5_000 });
  }
}

await mkdir(path.join(root, '.proofs'), { recursive: true });
const directory = await mkdtemp(path.join(root, '.proofs/files-'));
const createDirectory = async (name: string) => {
  await mkdir(path.join(directory, name), { recursive: true });
  return path.join(directory, name);
};
try {
  await checkFullDisk(await createDirectory('disk'));
  const server = await startVersityGw(await createDirectory('bucket'), BUCKET, PORT, credentials);
  try {
    await checkContract();
    await checkServing(await createDirectory('data'));
  } finally {
    await server.stop();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;
