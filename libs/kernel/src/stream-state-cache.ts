/** Estimated memory of a cached stream without its state: its command queue and its entries in two maps. */
const BASE_STREAM_BYTES = 2_000;
/** Default limit, for callers that do not derive one from the available memory. */
const MAX_BYTES = 256 * 1024 * 1024;

export interface CachedStream {
  /** No caller uses the stream, so it may be evicted: its state can be folded again from its events. */
  readonly isIdle: boolean;
  evict(): void;
}

/** LRU cache of the folded stream states of a process, limited by their estimated bytes. Streams in use stay cached. */
export class StreamStateCache {
  /** Bytes by stream, in the order of last use. */
  private readonly streams = new Map<CachedStream, number>();
  private totalBytes = 0;

  constructor(private readonly maxBytes = MAX_BYTES) {}

  get size(): number {
    return this.streams.size;
  }

  get bytes(): number {
    return this.totalBytes;
  }

  /** Records that a stream was used, and the size of its state now. Evicts idle streams if the limit is exceeded. */
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
