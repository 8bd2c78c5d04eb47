/** Buckets in a map: a change copies one bucket and this many references, not the whole map. */
const BUCKETS = 64;

const EMPTY: ReadonlyMap<string, never> = new Map<string, never>();

/**
 * An immutable map with string keys whose older versions stay valid, so that a decision can be tried on a state and
 * thrown away when the append is refused. A change costs about n/64 entries.
 */
export class PersistentMap<V> {
  private readonly buckets: readonly ReadonlyMap<string, V>[];
  readonly size: number;

  private constructor(buckets: readonly ReadonlyMap<string, V>[], size: number) {
    this.buckets = buckets;
    this.size = size;
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>([], 0);
  }

  static of<V>(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    const buckets: Map<string, V>[] = Array.from({ length: BUCKETS }, () => new Map());
    for (const [key, value] of entries) buckets[bucketOf(key)]?.set(key, value);
    return new PersistentMap<V>(
      buckets,
      buckets.reduce((total, bucket) => total + bucket.size, 0),
    );
  }

  get(key: string): V | undefined {
    return this.buckets[bucketOf(key)]?.get(key);
  }

  has(key: string): boolean {
    return this.buckets[bucketOf(key)]?.has(key) ?? false;
  }

  with(key: string, value: V): PersistentMap<V> {
    const bucket = new Map(this.bucket(key)).set(key, value);
    return this.replacing(key, bucket);
  }

  without(key: string): PersistentMap<V> {
    if (!this.has(key)) return this;
    const bucket = new Map(this.bucket(key));
    bucket.delete(key);
    return this.replacing(key, bucket);
  }

  *entries(): IterableIterator<readonly [string, V]> {
    for (const bucket of this.buckets) yield* bucket;
  }

  *values(): IterableIterator<V> {
    for (const bucket of this.buckets) yield* bucket.values();
  }

  private bucket(key: string): ReadonlyMap<string, V> {
    return this.buckets[bucketOf(key)] ?? EMPTY;
  }

  private replacing(key: string, bucket: ReadonlyMap<string, V>): PersistentMap<V> {
    const buckets =
      this.buckets.length > 0 ? this.buckets.slice() : new Array<ReadonlyMap<string, V>>(BUCKETS).fill(EMPTY);
    const index = bucketOf(key);
    const before = buckets[index]?.size ?? 0;
    buckets[index] = bucket;
    return new PersistentMap<V>(buckets, this.size - before + bucket.size);
  }
}

function bucketOf(key: string): number {
  let hash = 0;
  for (let i = 0; i < key.length; i++) hash = (hash * 31 + key.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 16)) & (BUCKETS - 1);
}
