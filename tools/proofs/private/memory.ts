/** All that another process has in memory: what lives, what is garbage, and buffers outside of its heap. */
import { open, readFile } from 'node:fs/promises';

const PIECE_BYTES = 8 * 1024 * 1024;

/**
 * Its writable memory, piece by piece, while it runs; pieces of one mapping are given one after another.
 * @throws Error where this may not look into other processes
 */
export async function* memoryOf(pid: number): AsyncGenerator<Buffer> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  const memory = await open(`/proc/${pid}/mem`, 'r');
  try {
    for (const line of maps.split('\n')) {
      const [, from, to, rights = ''] = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line) ?? [];
      if (!rights.startsWith('rw') || from === undefined || to === undefined) continue;
      const end = BigInt(`0x${to}`);
      for (let at = BigInt(`0x${from}`); at < end; ) {
        const wanted = Math.min(PIECE_BYTES, Number(end - at));
        const piece = Buffer.alloc(wanted);
        // What has gone since the list was read, and what is reserved alone, cannot be read.
        const { bytesRead } = await memory.read(piece, 0, wanted, at as never).catch(() => ({ bytesRead: 0 }));
        if (bytesRead === 0) break;
        yield piece.subarray(0, bytesRead);
        at += BigInt(bytesRead);
      }
    }
  } finally {
    await memory.close();
  }
}
