import { createHash } from 'node:crypto';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { StartError, type StartProgress } from '#foundation';
import { type Manifest, readManifest, type SavedTable } from './manifest.ts';
import { readWithProgress } from './read-with-progress.ts';

/**
 * Reads a backup completely. Checks that the file of every table is unchanged and has the expected number of rows. Also
 * checks that the positions of events increase. The revisions of every stream must start at 0 and have no gaps.
 * @throws StartError for the first problem
 */
export async function checkBackup(directory: string, startProgress?: StartProgress): Promise<Manifest> {
  const manifest = await readManifest(directory);
  for (const table of manifest.tables) await checkTable(directory, table, startProgress);
  return manifest;
}

async function checkTable(
  directory: string,
  { name, columns, file, rows, sha256 }: SavedTable,
  startProgress: StartProgress | undefined,
): Promise<void> {
  const filePath = path.join(directory, file);
  const hash = createHash('sha256');
  const hashStream = new PassThrough().on('data', (chunk) => hash.update(chunk));
  const lineCounter = name === 'es.events' ? new EventLineChecker(columns, filePath) : new LineCounter();
  const content = readWithProgress(filePath, `check ${name}`, startProgress);
  await pipeline(content, hashStream, createGunzip(), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) lineCounter.addChunk(chunk);
  }).catch((error) => {
    if (error instanceof StartError) throw error;
    throw new StartError(`${filePath} cannot be read: ${error.message}.`);
  });
  if (lineCounter.count !== rows) throw new StartError(`${filePath} has ${lineCounter.count} rows instead of ${rows}.`);
  if (hash.digest('hex') !== sha256) throw new StartError(`${filePath} was modified after it was written.`);
}

const NEWLINE = 0x0a;

/**
 * Counts rows in the text format of COPY: one line per row, with tabs between columns. Newlines and tabs are escaped in
 * values (https://www.postgresql.org/docs/current/sql-copy.html).
 */
export class LineCounter {
  count = 0;

  /** @returns the number of rows so far */
  addChunk(chunk: Buffer): number {
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) this.count += 1;
    return this.count;
  }
}

class EventLineChecker extends LineCounter {
  private rest = '';
  private position = -1n;
  private readonly revisions = new Map<string, number>();
  private readonly columnIndexes: readonly number[];

  constructor(
    columns: readonly string[],
    private readonly filePath: string,
  ) {
    super();
    this.columnIndexes = ['position', 'stream', 'revision'].map((column) => columns.indexOf(column));
  }

  override addChunk(chunk: Buffer): number {
    const count = super.addChunk(chunk);
    // A chunk may end within a multibyte character, so bytes are decoded one by one. The checked columns are ASCII.
    const lines = (this.rest + chunk.toString('latin1')).split('\n');
    this.rest = lines.pop() as string;
    for (const line of lines) this.checkLine(line);
    return count;
  }

  private checkLine(line: string): void {
    const values = line.split('\t');
    const [position = '', stream = '', revision = ''] = this.columnIndexes.map((at) => values[at]);
    const next = (this.revisions.get(stream) ?? -1) + 1;
    if (BigInt(position) <= this.position || Number(revision) !== next)
      throw new StartError(
        `${this.filePath}: the event at position ${position} of ${stream} is out of order, or one is missing.`,
      );
    this.position = BigInt(position);
    this.revisions.set(stream, next);
  }
}
