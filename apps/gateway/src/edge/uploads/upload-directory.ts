/** The directory in which a process stores the files of uploads while their requests are served. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { StartError } from '#foundation';

const HEARTBEAT_MS = 60_000;
/** A directory without a heartbeat for this long belongs to no running process, whichever host created it. */
const DEAD_AFTER_MS = 15 * HEARTBEAT_MS;
const NAME = /^(?<host>.+)\.(?<pid>\d+)\.[0-9a-f-]{36}$/;

/** Names of the directories that this process created. */
const ownDirectories = new Set<string>();

export class UploadDirectory {
  private constructor(
    readonly path: string,
    private readonly heartbeat: NodeJS.Timeout,
  ) {}

  /**
   * Creates a directory for this process below `root`. Now and every minute, removes the directories of processes that
   * have ended.
   * @throws StartError if the directory cannot be created; file system errors of the first removal
   */
  static async open(root: string, reportError: (problem: string, error: unknown) => void): Promise<UploadDirectory> {
    const name = `${hostname()}.${process.pid}.${randomUUID()}`;
    const directory = path.join(root, name);
    ownDirectories.add(name);
    await mkdir(directory, { recursive: true, mode: 0o700 }).catch((error) => {
      throw new StartError(`The upload directory ${root} cannot be used: ${error.message}.`);
    });
    await removeLeftovers(root, Date.now());
    const refresh = async () => {
      const now = new Date();
      await utimes(directory, now, now);
      await removeLeftovers(root, now.getTime());
    };
    const heartbeat = setInterval(
      () => void refresh().catch((error) => reportError('upload directories could not be maintained; retrying', error)),
      HEARTBEAT_MS,
    ).unref();
    return new UploadDirectory(directory, heartbeat);
  }

  async close(): Promise<void> {
    clearInterval(this.heartbeat);
    await rm(this.path, { recursive: true, force: true });
    ownDirectories.delete(path.basename(this.path));
  }
}

/** Only removes directories whose names have the form that `open` gives them. */
async function removeLeftovers(root: string, now: number): Promise<void> {
  for (const name of await readdir(root)) {
    if (await isLeftOver(root, name, now)) await rm(path.join(root, name), { recursive: true, force: true });
  }
}

async function isLeftOver(root: string, name: string, now: number): Promise<boolean> {
  const { host, pid } = NAME.exec(name)?.groups ?? {};
  if (host === undefined || ownDirectories.has(name)) return false;
  if (host === hostname() && !isRunning(Number(pid))) return true;
  const stats = await stat(path.join(root, name)).catch(() => undefined); // another process has removed it
  return stats !== undefined && now - stats.mtimeMs > DEAD_AFTER_MS;
}

/**
 * A directory that has this process id, but was not created by this process, belongs to an earlier process in a
 * container of the same name.
 */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
