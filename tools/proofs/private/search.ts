/** Searches the locations in which the gateway may have stored prompts or completions. */
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../../processes.ts';
import { dumpRows, listChangedFiles, listFiles } from './locations.ts';
import type { Find, SeededPhrases } from './markers.ts';
import { readMemory } from './memory.ts';
import type { Scene } from './scene.ts';

const CHUNK_BYTES = 8 * 1024 * 1024;
const SNAPSHOT_WITHIN_MS = 120_000;
const POLL_INTERVAL_MS = 100;
const COMMANDS = [['verify'], ['replay'], ['wallets'], ['jobs'], ['challenges']];

/** The finds in one location, by the name of the needle. */
export interface SearchResult {
  readonly location: string;
  readonly bytes: number;
  readonly finds: ReadonlyMap<string, readonly Find[]>;
}

export type SearchNeedles = Readonly<Record<string, SeededPhrases>>;

type ChunkSource = () => AsyncIterable<Buffer>;

export async function searchChunks(
  location: string,
  needles: SearchNeedles,
  readChunks: ChunkSource,
): Promise<SearchResult> {
  let bytes = 0;
  const countBytes = async function* () {
    for await (const chunk of readChunks()) {
      bytes += chunk.length;
      yield chunk;
    }
  };
  const finds = new Map<string, Find[]>(Object.keys(needles).map((name) => [name, []]));
  // A single pass searches each chunk for all needles, together with the end of the previous chunk.
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of countBytes()) {
    const joined = Buffer.concat([rest, chunk]);
    for (const [name, phrases] of Object.entries(needles)) {
      const matches = finds.get(name) as Find[];
      for (const find of phrases.findForms(joined))
        if (!matches.some(({ form }) => form === find.form)) matches.push(find);
    }
    const overlapBytes = Math.max(...Object.values(needles).map(({ maxFormBytes }) => maxFormBytes)) - 1;
    rest = joined.subarray(Math.max(0, joined.length - overlapBytes));
  }
  return { location, bytes, finds };
}

/** Searches the current memory of all gateways. */
export async function searchMemory(
  scene: Scene,
  needles: SearchNeedles,
  when: string,
): Promise<readonly SearchResult[]> {
  const searched: SearchResult[] = [];
  for (const [i, pid] of scene.gatewayPids.entries())
    searched.push(await searchChunks(`memory of gateway ${i + 1}, ${when}`, needles, () => readMemory(pid)));
  return searched;
}

/** Makes the gateways write heap snapshots and searches these. The snapshots are not deleted. */
export async function searchHeaps(
  scene: Scene,
  needles: SearchNeedles,
  when: string,
): Promise<readonly SearchResult[]> {
  const heapDirectory = path.join(scene.directory, 'wires');
  const listSnapshots = async () => (await readdir(heapDirectory)).filter((name) => name.endsWith('.heapsnapshot'));
  const searched: SearchResult[] = [];
  for (const [i, pid] of scene.gatewayPids.entries()) {
    const before = new Set(await listSnapshots());
    process.kill(pid, 'SIGUSR2');
    const deadline = performance.now() + SNAPSHOT_WITHIN_MS;
    let file: string | undefined;
    while (!file) {
      if (performance.now() > deadline) throw new Error('a gateway wrote no heap snapshot');
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
      file = (await listSnapshots()).find((name) => !before.has(name) && name.includes(String(pid)));
    }
    // The gateway does not respond until the snapshot has been written.
    await fetch(`${scene.cluster.gateways[i]}/v1/models`);
    searched.push(await searchFiles(`heap of gateway ${i + 1}, ${when}`, needles, [path.join(heapDirectory, file)]));
  }
  return searched;
}

export function searchFiles(location: string, needles: SearchNeedles, files: readonly string[]): Promise<SearchResult> {
  return searchChunks(location, needles, async function* () {
    // A file that no longer exists, such as a completed segment of the database's log, has not retained anything.
    for (const file of files) {
      try {
        yield* createReadStream(file, { highWaterMark: CHUNK_BYTES });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  });
}

/**
 * Searches recorded traffic, logs, the rows and files of the database, other files, the output of the ledger, and the
 * history and keys from the API.
 */
export async function searchStorage(
  scene: Scene,
  needles: SearchNeedles,
  startedAt: number,
): Promise<readonly SearchResult[]> {
  const { gateways, enclaves } = scene.wires;
  await Promise.all([...gateways, enclaves].map((recorder) => recorder.readRequests()));
  const exports: string[] = [];
  for (const args of COMMANDS) exports.push((await scene.cluster.runLedger(...args)).output);
  const texts: readonly (readonly [string, string])[] = [
    ['logs of gateways, projector, sagas and proxies', scene.collectOutput()],
    ['output of the ledger', exports.join('\n')],
    ['history and keys from the API', await fetchHistoryAndKeys(scene)],
  ];
  const searched = [
    await searchFiles(
      'traffic from proxies to gateways',
      needles,
      gateways.map(({ files: [sent] }) => sent),
    ),
    await searchFiles(
      'traffic from gateways to proxies',
      needles,
      gateways.map(({ files: [, received] }) => received),
    ),
    await searchFiles('traffic from gateways to enclaves', needles, [enclaves.files[0]]),
    await searchFiles('traffic from enclaves to gateways', needles, [enclaves.files[1]]),
    await searchChunks('every row of the database', needles, () => dumpRows(scene.database)),
    await searchDataFiles(scene, needles, 'while the database is running'),
    await searchFiles('temporary files', needles, await listFiles(path.join(scene.directory, 'tmp'))),
    await searchFiles('changed files of the project', needles, await listChangedFiles(root, startedAt)),
  ];
  for (const [location, text] of texts) {
    searched.push(
      await searchChunks(location, needles, async function* () {
        yield Buffer.from(text);
      }),
    );
  }
  return searched;
}

/** Searches the data directory, which contains the embedded database. Some data is written only when that ends. */
export async function searchDataFiles(
  { directory }: Scene,
  needles: SearchNeedles,
  when: string,
): Promise<SearchResult> {
  return searchFiles(`files of the data directory, ${when}`, needles, await listFiles(path.join(directory, 'data')));
}

async function fetchHistoryAndKeys({ cluster, customer }: Scene): Promise<string> {
  const [api = ''] = cluster.gateways;
  const key = { authorization: `Bearer ${customer.apiKey}` };
  const responses = await Promise.all([
    fetch(`${api}/queries/history?page=1&page_count=100`, { headers: key }),
    fetch(`${api}/keys`, { headers: { 'x-credit-id': customer.creditId } }),
  ]);
  return (await Promise.all(responses.map((response) => response.text()))).join('\n');
}
