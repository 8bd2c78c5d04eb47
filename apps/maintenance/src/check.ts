import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { StartError } from '#foundation';
import { type Manifest, readManifest, type SavedTable } from './manifest.ts';

/**
 * Reads a backup from its first byte to its last: every file is as it was written, has the rows that it should have, and of
 * every stream each fact once, in order.
 * @throws StartError with what is wrong first
 */
export async function checkBackup(directory: string): Promise<Manifest> {
  const manifest = await readManifest(directory);
  for (const table of manifest.tables) await checkTable(directory, table);
  return manifest;
}

async function checkTable(directory: string, { name, columns, file, rows, sha256 }: SavedTable): Promise<void> {
  const place = path.join(directory, file);
  const hash = createHash('sha256');
  const hashed = new PassThrough().on('data', (piece) => hash.update(piece));
  const lines = name === 'es.events' ? new FactLines(columns, place) : new Lines();
  await pipeline(createReadStream(place), hashed, createGunzip(), async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) lines.take(piece);
  }).catch((error) => {
    if (error instanceof StartError) throw error;
    throw new StartError(`${place} cannot be read: ${error.message}.`);
  });
  if (lines.count !== rows) throw new StartError(`${place} has ${lines.count} rows instead of ${rows}.`);
  if (hash.digest('hex') !== sha256) throw new StartError(`${place} is not as it was written.`);
}

const NEWLINE = 0x0a;

/** Rows as PostgreSQL copies them: a line each, with a tab between columns; neither is in a value. */
class Lines {
  count = 0;

  take(piece: Buffer): void {
    for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) this.count += 1;
  }
}

class FactLines extends Lines {
  private rest = '';
  private position = -1n;
  private readonly revisions = new Map<string, number>();
  private readonly columnsAt: readonly number[];

  constructor(
    columns: readonly string[],
    private readonly place: string,
  ) {
    super();
    this.columnsAt = ['position', 'stream', 'revision'].map((each) => columns.indexOf(each));
  }

  override take(piece: Buffer): void {
    super.take(piece);
    // A piece may end within a character of several bytes: what is looked at here has none of these.
    const lines = (this.rest + piece.toString('latin1')).split('\n');
    this.rest = lines.pop() as string;
    for (const line of lines) this.check(line);
  }

  private check(line: string): void {
    const values = line.split('\t');
    const [position = '', stream = '', revision = ''] = this.columnsAt.map((at) => values[at]);
    const next = (this.revisions.get(stream) ?? -1) + 1;
    if (BigInt(position) <= this.position || Number(revision) !== next)
      throw new StartError(`${this.place}: the fact at position ${position} is not the next one of ${stream}.`);
    this.position = BigInt(position);
    this.revisions.set(stream, next);
  }
}
