/**
 * `npm run prove:uploads`: 50 concurrent uploads of 25 MB to one gateway: files that are rejected after they were read,
 * audio to transcribe, and images to edit. The gateway needs less than 300 MB more at its peak and responds to other
 * requests at the same time. Afterwards no file is left on disk. The files of a killed gateway are deleted by the next
 * gateway.
 */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import { Readable } from 'node:stream';
import { crc32, deflateSync } from 'node:zlib';
import { type Customer, ProofCluster } from '../cluster.ts';
import { readProcessUsage } from '../processes.ts';

const AT_ONCE = 50;
const FILE_BYTES = 25 * 1024 * 1024;
const MAX_EXTRA_MB = 300;
const POLL_INTERVAL_MS = 20;
const CREDIT_USD = 500;
const CHUNK = Buffer.alloc(64 * 1024);

let failed = 0;

function check(holds: boolean, line: string): void {
  process.stdout.write(`${holds ? 'passes' : 'FAILS '} ${line}\n`);
  if (!holds) failed++;
}

/** Returns the header of a WAV file of `bytes` bytes: PCM, 16 kHz, 16 bits, mono. Zeros follow as samples. */
function createWavHeader(bytes: number): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(bytes - 8, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(16_000, 24);
  head.writeUInt32LE(32_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(bytes - 44, 40);
  return head;
}

function createPngChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from(type, 'latin1'), data, Buffer.alloc(4)]);
  chunk.writeUInt32BE(data.length, 0);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}

/**
 * Returns the start and the end of a PNG image of one pixel. A chunk of zeros between them pads it to `bytes` bytes.
 */
function createPngEnvelope(bytes: number): readonly [begin: Buffer, end: Buffer] {
  const size = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
  const head = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), createPngChunk('IHDR', size)]);
  const tail = Buffer.concat([
    createPngChunk('IDAT', deflateSync(Buffer.alloc(4))),
    createPngChunk('IEND', Buffer.alloc(0)),
  ]);
  const padding = createPngChunk('noTe', Buffer.alloc(bytes - head.length - tail.length - 12));
  return [Buffer.concat([head, padding.subarray(0, 8)]), Buffer.concat([padding.subarray(-4), tail])];
}

interface Form {
  readonly route: string;
  readonly field: string;
  /** The start of the file, which zeros follow. */
  readonly begin: Buffer;
  /** The end of the file, after the zeros. */
  readonly end: Buffer;
  readonly model: string;
}

/** Uploads a file that is generated while it is sent, so that it takes no memory here. @returns the status */
function upload(api: string, { apiKey }: Customer, { route, field, begin, end, model }: Form): Promise<number> {
  const disposition = (name: string, extraParameters = '') =>
    `--x\r\nContent-Disposition: form-data; name="${name}"${extraParameters}\r\n\r\n`;
  const body = function* () {
    yield Buffer.from(`${disposition('model')}${model}\r\n${disposition('prompt')}x\r\n`);
    yield Buffer.from(disposition(field, '; filename="a.wav"'));
    yield begin;
    for (let remaining = FILE_BYTES - begin.length - end.length; remaining > 0; remaining -= CHUNK.length)
      yield CHUNK.subarray(0, remaining);
    yield end;
    yield Buffer.from('\r\n--x--\r\n');
  };
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'multipart/form-data; boundary=x' };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const clientRequest = request(`${api}${route}`, { method: 'POST', headers });
  clientRequest.once('error', reject).once('response', (response) => {
    response.resume().once('end', () => resolve(response.statusCode ?? 0));
  });
  Readable.from(body()).pipe(clientRequest);
  return promise;
}

async function checkUploads(
  cluster: ProofCluster,
  customer: Customer,
  form: Form,
  expectedStatus: number,
): Promise<void> {
  const [api = ''] = cluster.gateways;
  const { pid = 0 } = cluster.processes.get('gateway 1') ?? {};
  const before = readProcessUsage([pid]).megabytes;
  let [peak, slowest] = [before, 0];
  const memoryTimer = setInterval(() => {
    peak = Math.max(peak, readProcessUsage([pid]).megabytes);
  }, POLL_INTERVAL_MS);
  const stop = new AbortController();
  const otherRequests = (async () => {
    while (!stop.signal.aborted) {
      const sentAt = performance.now();
      await (await fetch(`${api}/health`)).arrayBuffer();
      slowest = Math.max(slowest, performance.now() - sentAt);
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  })();
  const startedAt = performance.now();
  const statuses = await Promise.all(Array.from({ length: AT_ONCE }, () => upload(api, customer, form)));
  const seconds = (performance.now() - startedAt) / 1_000;
  stop.abort();
  await otherRequests;
  clearInterval(memoryTimer);
  const matchingCount = statuses.filter((status) => status === expectedStatus).length;
  const what = `${AT_ONCE} uploads of ${FILE_BYTES / 1024 / 1024} MB to ${form.route}`;
  check(
    matchingCount === AT_ONCE,
    `${what}: ${matchingCount} got ${expectedStatus}, in ${seconds.toFixed(1)} s (all statuses: ${[...new Set(statuses)]})`,
  );
  check(
    peak - before < MAX_EXTRA_MB,
    `${what}: peak memory ${(peak - before).toFixed(0)} MB above ${before.toFixed(0)} MB`,
  );
  process.stdout.write(`       the slowest other request took ${slowest.toFixed(0)} ms\n`);
}

/** Counts uploaded files on disk. A file is deleted when its request has ended. */
async function countUploads(dataDir: string): Promise<number> {
  const directories = await readdir(path.join(dataDir, 'uploads'));
  const files = await Promise.all(directories.map((name) => readdir(path.join(dataDir, 'uploads', name))));
  return files.flat().length;
}

/** Kills a gateway during uploads. The next gateway must remove the files that the killed gateway left. */
async function restart(cluster: ProofCluster, customer: Customer, form: Form): Promise<void> {
  const [api = ''] = cluster.gateways;
  const sent = Promise.allSettled(Array.from({ length: AT_ONCE }, () => upload(api, customer, form)));
  while ((await countUploads(cluster.dataDir)) < AT_ONCE / 2) await new Promise(setImmediate);
  await cluster.processes.get('gateway 1')?.kill();
  await sent;
  const before = await countUploads(cluster.dataDir);
  await cluster.startRole('gateway', 'gateway 1');
  const after = await countUploads(cluster.dataDir);
  check(
    before > 0 && after === 0,
    `a killed gateway left ${before} files; ${after} of them remain after the start of the next one`,
  );
}

// The system's directory for temporary files may be in memory.
await mkdir('.proofs', { recursive: true });
const directory = await mkdtemp(path.resolve('.proofs/uploads-'));
try {
  const cluster = await ProofCluster.start(directory, 1);
  try {
    const customer = await cluster.createCustomer(CREDIT_USD);
    const audio = { begin: createWavHeader(FILE_BYTES), end: Buffer.alloc(0) };
    const [begin, end] = createPngEnvelope(FILE_BYTES);
    const edit = { route: '/v1/images/edits', field: 'image', model: 'openai/gpt-image-1.5' };
    await checkUploads(cluster, customer, { ...edit, ...audio }, 400);
    await checkUploads(
      cluster,
      customer,
      { ...audio, route: '/v1/audio/transcriptions', field: 'file', model: 'nova-3' },
      200,
    );
    await checkUploads(cluster, customer, { ...edit, begin, end }, 200);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const remainingFiles = await countUploads(directory);
    check(remainingFiles === 0, `${remainingFiles} uploaded files are left on disk`);
    check((await cluster.fetchBalance(customer)).held_usd === 0, 'no money is held');
    await restart(cluster, customer, { ...edit, begin, end });
  } finally {
    await cluster.stop();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;
