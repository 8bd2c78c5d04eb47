/** Stores files in a directory of this host, or in one that all processes share. */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, mkdtemp, open, readdir, rename, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import {
  type ByteRange,
  type FileName,
  FileStore,
  FileStoreUnavailableError,
  type FileToStore,
  type StoredFile,
} from '#application';
import { isFileNumber, isHourExpired, resolveHourName, toHourName } from './names.ts';
import { syncDirectory } from './sync-directory.ts';

/**
 * Each file starts with its media type, padded with spaces to this length, so that one rename publishes both type and
 * content.
 */
const HEAD_BYTES = 128;
const HEAD_END = '\n';

/**
 * Paths are `<hour>/<id>/<n>`, so that one directory is deleted per hour. A file is written under a temporary name and
 * renamed once it is on disk. A temporary file of a process that died is deleted with its hour.
 */
export class LocalFiles extends FileStore {
  private constructor(private readonly root: string) {
    super();
  }

  /** @throws FileStoreUnavailableError if the directory cannot be used */
  static async open(root: string): Promise<LocalFiles> {
    await withUnavailableErrors(() => mkdir(root, { recursive: true, mode: 0o700 }));
    await withUnavailableErrors(() => mkdtemp(path.join(root, 'probe-')).then((probe) => rmdir(probe), ignoreDiskFull));
    return new LocalFiles(root);
  }

  override async save({ id, n, mediaType, bytes }: FileToStore): Promise<number> {
    const directory = path.join(this.root, resolveHourName(id, n, mediaType), id);
    const createdDirectory = await withUnavailableErrors(() => mkdir(directory, { recursive: true, mode: 0o700 }));
    const unfinished = path.join(directory, `${n}.${randomUUID()}`);
    try {
      const size = await writeStoredFile(unfinished, mediaType, bytes);
      await withUnavailableErrors(() => rename(unfinished, path.join(directory, String(n))));
      await withUnavailableErrors(() => syncDirectory(directory));
      if (createdDirectory)
        for (const above of [path.dirname(directory), this.root])
          await withUnavailableErrors(() => syncDirectory(above));
      return size;
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {}); // the error above matters
      throw error;
    }
  }

  override async find({ id, n }: FileName): Promise<StoredFile | undefined> {
    const hour = toHourName(id);
    if (hour === undefined || !isFileNumber(n)) return undefined;
    const file = path.join(this.root, hour, id, String(n));
    return withUnavailableErrors(async () => {
      const handle = await open(file).catch(ignoreMissing);
      if (handle === undefined) return undefined;
      try {
        const mediaType = await readMediaType(handle);
        const { size } = await handle.stat();
        return { mediaType, size: size - HEAD_BYTES, read: (range) => readChunks(file, range) };
      } finally {
        await handle.close();
      }
    });
  }

  override async remove(id: string): Promise<void> {
    const hour = toHourName(id);
    if (hour === undefined) return;
    await withUnavailableErrors(() => rm(path.join(this.root, hour, id), { recursive: true, force: true }));
  }

  override async removeExpired(now: number): Promise<number> {
    return withUnavailableErrors(async () => {
      let ids = 0;
      for (const hour of (await readdir(this.root)).filter((name) => isHourExpired(name, now))) {
        const directory = path.join(this.root, hour);
        ids += (await readdir(directory).catch(ignoreMissing))?.length ?? 0;
        await rm(directory, { recursive: true, force: true });
      }
      return ids;
    });
  }

  override async close(): Promise<void> {}
}

/** Returns the size of the content in bytes. */
async function writeStoredFile(file: string, mediaType: string, bytes: FileToStore['bytes']): Promise<number> {
  const handle = await withUnavailableErrors(() => open(file, 'wx', 0o600));
  try {
    let size = 0;
    await withUnavailableErrors(() => handle.writeFile(`${mediaType}${HEAD_END}`.padEnd(HEAD_BYTES)));
    const write = (chunk: Uint8Array) => withUnavailableErrors(() => handle.writeFile(chunk));
    for await (const chunk of bytes instanceof Uint8Array ? [bytes] : bytes) {
      await write(chunk);
      size += chunk.byteLength;
    }
    await withUnavailableErrors(() => handle.sync());
    return size;
  } finally {
    await handle.close();
  }
}

async function readMediaType(handle: FileHandle): Promise<string> {
  const { buffer } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
  return buffer.toString('latin1').split(HEAD_END, 1)[0] ?? '';
}

async function* readChunks(file: string, range?: ByteRange): AsyncIterable<Uint8Array> {
  const start = HEAD_BYTES + (range?.start ?? 0);
  const chunks = createReadStream(file, range ? { start, end: HEAD_BYTES + range.end } : { start });
  try {
    yield* chunks;
  } catch (cause) {
    throw new FileStoreUnavailableError(cause);
  }
}

/** A full disk must not prevent the start: expired files are removed only after the start. */
function ignoreDiskFull(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOSPC' && error.code !== 'EDQUOT') throw error;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

async function withUnavailableErrors<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    throw new FileStoreUnavailableError(cause);
  }
}
