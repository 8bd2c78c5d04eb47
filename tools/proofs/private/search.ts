/** A search of every place where the gateway may have kept something. */
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../../processes.ts';
import { changedSince, dumpOf, filesBelow } from './locations.ts';
import type { Find, Planted } from './markers.ts';
import { memoryOf } from './memory.ts';
import type { Scene } from './scene.ts';

const PIECE_BYTES = 8 * 1024 * 1024;
const SNAPSHOT_WITHIN_MS = 120_000;
const LOOK_AGAIN_MS = 100;
const COMMANDS = [['verify'], ['replay'], ['wallets'], ['jobs'], ['challenges']];

/** What was found in one place, by the name of what was looked for. */
export interface Searched {
  readonly place: string;
  readonly bytes: number;
  readonly finds: ReadonlyMap<string, readonly Find[]>;
}

export type Sought = Readonly<Record<string, Planted>>;

type Pieces = () => AsyncIterable<Buffer>;

export async function searchPieces(place: string, sought: Sought, pieces: Pieces): Promise<Searched> {
  let bytes = 0;
  const counted = async function* () {
    for await (const piece of pieces()) {
      bytes += piece.length;
      yield piece;
    }
  };
  const finds = new Map<string, Find[]>(Object.keys(sought).map((name) => [name, []]));
  // One pass for all: each piece is looked at for everything, with the end of the one before.
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of counted()) {
    const joined = Buffer.concat([rest, piece]);
    for (const [name, planted] of Object.entries(sought)) {
      const found = finds.get(name) as Find[];
      for (const find of planted.findIn(joined)) if (!found.some(({ form }) => form === find.form)) found.push(find);
    }
    const kept = Math.max(...Object.values(sought).map(({ longest }) => longest)) - 1;
    rest = joined.subarray(Math.max(0, joined.length - kept));
  }
  return { place, bytes, finds };
}

/** The memory of the gateways as it is now. */
export async function searchMemory(scene: Scene, sought: Sought, when: string): Promise<readonly Searched[]> {
  const searched: Searched[] = [];
  for (const [i, pid] of scene.gatewayPids.entries())
    searched.push(await searchPieces(`memory of gateway ${i + 1}, ${when}`, sought, () => memoryOf(pid)));
  return searched;
}

/** What the gateways write of their heaps, which is left where it is. */
export async function searchHeaps(scene: Scene, sought: Sought, when: string): Promise<readonly Searched[]> {
  const place = path.join(scene.directory, 'wires');
  const snapshots = async () => (await readdir(place)).filter((name) => name.endsWith('.heapsnapshot'));
  const searched: Searched[] = [];
  for (const [i, pid] of scene.gatewayPids.entries()) {
    const before = new Set(await snapshots());
    process.kill(pid, 'SIGUSR2');
    const deadline = performance.now() + SNAPSHOT_WITHIN_MS;
    let file: string | undefined;
    while (!file) {
      if (performance.now() > deadline) throw new Error('a gateway wrote no snapshot of its heap');
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
      file = (await snapshots()).find((name) => !before.has(name) && name.includes(String(pid)));
    }
    // It has been written when the gateway answers again.
    await fetch(`${scene.cluster.gateways[i]}/v1/models`);
    searched.push(await searchFiles(`heap of gateway ${i + 1}, ${when}`, sought, [path.join(place, file)]));
  }
  return searched;
}

export function searchFiles(place: string, sought: Sought, files: readonly string[]): Promise<Searched> {
  return searchPieces(place, sought, async function* () {
    // One that is gone meanwhile, such as a finished part of the database's log, was not kept.
    for (const file of files) {
      try {
        yield* createReadStream(file, { highWaterMark: PIECE_BYTES });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  });
}

/** Wires, logs, the database as files and as rows, other files, and what the ledger exports. */
export async function searchStored(scene: Scene, sought: Sought, began: number): Promise<readonly Searched[]> {
  const { gateways, enclaves } = scene.wires;
  await Promise.all([...gateways, enclaves].map((wire) => wire.requests()));
  const exports: string[] = [];
  for (const args of COMMANDS) exports.push((await scene.cluster.ledger(...args)).output);
  const texts: readonly (readonly [string, string])[] = [
    ['logs of gateways, projector, sagas and proxies', scene.printed()],
    ['what the ledger prints', exports.join('\n')],
    ['history and keys, as the API has them', await apiSays(scene)],
  ];
  const searched = [
    await searchFiles(
      'wire from proxies to gateways',
      sought,
      gateways.map(({ files: [sent] }) => sent),
    ),
    await searchFiles(
      'wire from gateways to proxies',
      sought,
      gateways.map(({ files: [, answered] }) => answered),
    ),
    await searchFiles('wire from gateways to enclaves', sought, [enclaves.files[0]]),
    await searchFiles('wire from enclaves to gateways', sought, [enclaves.files[1]]),
    await searchPieces('every row of the database', sought, () => dumpOf(scene.database)),
    await searchDataFiles(scene, sought, 'while the database runs'),
    await searchFiles('temporary files', sought, await filesBelow(path.join(scene.directory, 'tmp'))),
    await searchFiles('files of the project that changed', sought, await changedSince(root, began)),
  ];
  for (const [place, text] of texts) {
    searched.push(
      await searchPieces(place, sought, async function* () {
        yield Buffer.from(text);
      }),
    );
  }
  return searched;
}

/** Of the embedded database; what is not in its files while it runs is in them when it has ended. */
export async function searchDataFiles({ directory }: Scene, sought: Sought, when: string): Promise<Searched> {
  return searchFiles(`files of the data directory, ${when}`, sought, await filesBelow(path.join(directory, 'data')));
}

async function apiSays({ cluster, customer }: Scene): Promise<string> {
  const [api = ''] = cluster.gateways;
  const key = { authorization: `Bearer ${customer.apiKey}` };
  const answers = await Promise.all([
    fetch(`${api}/queries/history?page=1&page_count=100`, { headers: key }),
    fetch(`${api}/keys`, { headers: { 'x-credit-id': customer.creditId } }),
  ]);
  return (await Promise.all(answers.map((answer) => answer.text()))).join('\n');
}
