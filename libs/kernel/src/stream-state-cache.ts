/** What is kept of a stream beside its state: its writer, and its places in two maps. */
const BASE_STREAM_BYTES = 4_000;
/** Where nobody knows how much memory there is. */
const MAX_BYTES = 256 * 1024 * 1024;

export interface CachedStream {
  /** Nobody waits for it, so it may be forgotten: its facts say the same. */
  readonly isIdle: boolean;
  evict(): void;
}

/** The folded streams of a process: those that were used last, as many as fit into so much memory by what each takes about. */
export class StreamStateCache {
  /** In the order of last use. */
  private readonly streams = new Map<CachedStream, number>();
  private totalBytes = 0;

  constructor(private readonly maxBytes = MAX_BYTES) {}

  get size(): number {
    return this.streams.size;
  }

  get bytes(): number {
    return this.totalBytes;
  }

  /** It was used, and its state takes about so many bytes now. Others are forgotten where there is no room for all. */
  touch(stream: CachedStream, stateBytes: number): void {
    this.remove(stream);
    const bytes = BASE_STREAM_BYTES + stateBytes;
    this.streams.set(stream, bytes);
    this.totalBytes += bytes;
    if (this.totalBytes > this.maxBytes) this.evictIdle();
  }

  private evictIdle(): void {
    for (const stream of this.streams.keys()) {
      if (!stream.isIdle) continue;
      this.remove(stream);
      stream.evict();
      if (this.totalBytes <= this.maxBytes) return;
    }
  }

  private remove(stream: CachedStream): void {
    this.totalBytes -= this.streams.get(stream) ?? 0;
    this.streams.delete(stream);
  }
}
