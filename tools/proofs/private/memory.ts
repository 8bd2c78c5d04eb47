/** Reads the writable memory of another process: live objects, garbage, and buffers outside of its heap. */
import { type FileHandle, open, readFile } from 'node:fs/promises';

const PAGE_BYTES = 4_096;
/** The size of an entry in /proc/<pid>/pagemap (https://docs.kernel.org/admin-guide/mm/pagemap.html). */
const ENTRY_BYTES = 8;
/** Bits 62 (swapped out) and 63 (in memory) of an entry, as bits of its last byte. */
const IS_THERE = 0xc0;
const MAX_SPAN_PAGES = 2_048;

interface Span {
  readonly from: bigint;
  readonly pages: number;
}

/**
 * Reads the writable memory of a running process in chunks.
 * @throws Error if the process has ended, or its memory may not be read
 */
export async function* readMemory(pid: number): AsyncGenerator<Buffer> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  const memory = await open(`/proc/${pid}/mem`, 'r');
  const pagemap = await open(`/proc/${pid}/pagemap`, 'r');
  try {
    for (const line of maps.split('\n')) {
      const [, from, to, rights = ''] = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line) ?? [];
      if (!rights.startsWith('rw') || from === undefined || to === undefined) continue;
      for await (const { from: start, pages } of listSpans(pagemap, BigInt(`0x${from}`), BigInt(`0x${to}`))) {
        const chunk = Buffer.alloc(pages * PAGE_BYTES);
        // Memory that was freed after the list was read cannot be read.
        const { bytesRead } = await memory.read(chunk, 0, chunk.length, start as never).catch(() => ({ bytesRead: 0 }));
        yield chunk.subarray(0, bytesRead);
      }
    }
  } finally {
    await memory.close();
    await pagemap.close();
  }
}

/** Lists spans of consecutive pages that are in memory or swapped out. Most other pages were never used. */
async function* listSpans(pagemap: FileHandle, from: bigint, to: bigint): AsyncGenerator<Span> {
  const page = BigInt(PAGE_BYTES);
  for (let at = from; at < to; at += BigInt(MAX_SPAN_PAGES) * page) {
    const count = Math.min(MAX_SPAN_PAGES, Number((to - at) / page));
    const entries = Buffer.alloc(count * ENTRY_BYTES);
    await pagemap.read(entries, 0, entries.length, ((at / page) * BigInt(ENTRY_BYTES)) as never);
    const isThere = (i: number) => ((entries[i * ENTRY_BYTES + ENTRY_BYTES - 1] ?? 0) & IS_THERE) !== 0;
    for (let first = 0; first < count; first++) {
      if (!isThere(first)) continue;
      let next = first + 1;
      while (next < count && isThere(next)) next++;
      yield { from: at + BigInt(first) * page, pages: next - first };
      first = next;
    }
  }
}
