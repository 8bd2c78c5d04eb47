/** What is kept of a stream beside its state: its writer, and its places in two maps. */
const BYTES_OF_ANY = 4_000;
/** Where nobody knows how much memory there is. */
const MAX_BYTES = 256 * 1024 * 1024;

export interface CachedStream {
  /** Nobody waits for it, so it may be forgotten: its facts say the same. */
  readonly idle: boolean;
  forget(): void;
}

/** The folded streams of a process: those that were used last, as many as fit into so much memory by what each takes about. */
export class StreamStateCache {
  /** In the order of last use. */
  private readonly streams = new Map<CachedStream, number>();
  private total = 0;

  constructor(private readonly maxBytes = MAX_BYTES) {}

  get size(): number {
    return this.streams.size;
  }

  get bytes(): number {
    return this.total;
  }

  /** It was used, and its state takes about so many bytes now. Others are forgotten where there is no room for all. */
  keep(stream: CachedStream, stateBytes: number): void {
    this.remove(stream);
    const bytes = BYTES_OF_ANY + stateBytes;
    this.streams.set(stream, bytes);
    this.total += bytes;
    if (this.total > this.maxBytes) this.makeRoom();
  }

  private makeRoom(): void {
    for (const stream of this.streams.keys()) {
      if (!stream.idle) continue;
      this.remove(stream);
      stream.forget();
      if (this.total <= this.maxBytes) return;
    }
  }

  private remove(stream: CachedStream): void {
    this.total -= this.streams.get(stream) ?? 0;
    this.streams.delete(stream);
  }
}
