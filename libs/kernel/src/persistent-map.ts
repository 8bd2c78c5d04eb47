type Bucket<V> = ReadonlyMap<string, V>;
type Branch<V> = readonly Bucket<V>[];

/** A map has this many branches with this many buckets each. A change copies one bucket and 2 × `FORKS` references. */
const FORKS = 8;
const FORK_BITS = 3;
/** Heap size of the branches of a non-empty map, measured with Node 24. */
const BRANCH_BYTES = 800;
/** Heap size of a bucket without its entries, measured with Node 24. */
const BUCKET_BYTES = 200;

/**
 * The buckets and branches of an empty map. Maps that grow from it share those that they have not changed. This saves
 * memory: most maps of most accounts have few entries or none.
 */
const NO_BUCKETS: Branch<never> = new Array(FORKS).fill(new Map<string, never>());
const NO_BRANCHES: readonly Branch<never>[] = new Array(FORKS).fill(NO_BUCKETS);

/**
 * An immutable map with string keys. Older versions stay valid, so that the state after a decision can be discarded if
 * its append is rejected. A change of a map with n entries copies about n/64 of them.
 */
export class PersistentMap<V> {
  private readonly branches: readonly Branch<V>[];
  readonly size: number;

  private constructor(branches: readonly Branch<V>[], size: number) {
    this.branches = branches;
    this.size = size;
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(NO_BRANCHES, 0);
  }

  static from<V>(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    const branches = Array.from({ length: FORKS }, () => Array.from({ length: FORKS }, () => new Map<string, V>()));
    for (const [key, value] of entries) {
      const hash = hashKey(key);
      branches[getBranchIndex(hash)]?.[getBucketIndex(hash)]?.set(key, value);
    }
    return new PersistentMap<V>(
      branches,
      branches.flat().reduce((total, bucket) => total + bucket.size, 0),
    );
  }

  get(key: string): V | undefined {
    return this.size === 0 ? undefined : this.getBucket(hashKey(key)).get(key);
  }

  *keys(): IterableIterator<string> {
    for (const [key] of this.entries()) yield key;
  }

  has(key: string): boolean {
    return this.size > 0 && this.getBucket(hashKey(key)).has(key);
  }

  with(key: string, value: V): PersistentMap<V> {
    const hash = hashKey(key);
    return this.withBucket(hash, new Map(this.getBucket(hash)).set(key, value));
  }

  without(key: string): PersistentMap<V> {
    const hash = hashKey(key);
    if (!this.getBucket(hash).has(key)) return this;
    const bucket = new Map(this.getBucket(hash));
    bucket.delete(key);
    return this.withBucket(hash, bucket);
  }

  estimateBytes(bytesPerEntry: number): number {
    return this.size === 0
      ? 0
      : BRANCH_BYTES + BUCKET_BYTES * Math.min(this.size, FORKS ** 2) + bytesPerEntry * this.size;
  }

  *entries(): IterableIterator<readonly [string, V]> {
    for (const branch of this.branches) for (const bucket of branch) yield* bucket;
  }

  *values(): IterableIterator<V> {
    for (const branch of this.branches) for (const bucket of branch) yield* bucket.values();
  }

  private getBucket(hash: number): Bucket<V> {
    return (this.branches[getBranchIndex(hash)] as Branch<V>)[getBucketIndex(hash)] as Bucket<V>;
  }

  private withBucket(hash: number, bucket: Bucket<V>): PersistentMap<V> {
    const size = this.size - this.getBucket(hash).size + bucket.size;
    const branches = this.branches.slice();
    const branch = (branches[getBranchIndex(hash)] as Branch<V>).slice();
    branch[getBucketIndex(hash)] = bucket;
    branches[getBranchIndex(hash)] = branch;
    return new PersistentMap<V>(branches, size);
  }
}

function getBranchIndex(hash: number): number {
  return hash & (FORKS - 1);
}

function getBucketIndex(hash: number): number {
  return (hash >>> FORK_BITS) & (FORKS - 1);
}

/**
 * The hash of the last key is cached: a decision often reads the same key in several maps and then adds it to one.
 */
let lastKey = '';
let lastHash = 0;

function hashKey(key: string): number {
  if (key === lastKey) return lastHash;
  let hash = 0;
  for (let i = 0; i < key.length; i++) hash = (hash * 31 + key.charCodeAt(i)) | 0;
  lastKey = key;
  lastHash = hash ^ (hash >>> 16);
  return lastHash;
}
