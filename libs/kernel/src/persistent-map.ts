type Entry<V> = readonly [key: string, value: V];
/** Entries whose keys fall together: few, so that looking at each of them is faster than hashing again. */
type Bucket<V> = readonly Entry<V>[];
type Branch<V> = readonly Bucket<V>[];

/** A map has so many branches with so many buckets each: a change copies one bucket and twice this many references. */
const FORKS = 8;
const FORK_BITS = 3;

const NO_BUCKETS: Branch<never> = new Array(FORKS).fill([]);
const NO_BRANCHES: readonly Branch<never>[] = new Array(FORKS).fill(NO_BUCKETS);

/**
 * An immutable map with string keys whose older versions stay valid, so that a decision can be tried on a state and
 * thrown away when the append is refused. A change costs about n/64 entries; a small map takes little memory.
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

  static of<V>(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    let map = PersistentMap.empty<V>();
    for (const [key, value] of entries) map = map.with(key, value);
    return map;
  }

  get(key: string): V | undefined {
    const bucket = this.bucket(hashOf(key));
    return bucket[placeIn(bucket, key)]?.[1];
  }

  has(key: string): boolean {
    return placeIn(this.bucket(hashOf(key)), key) >= 0;
  }

  with(key: string, value: V): PersistentMap<V> {
    const hash = hashOf(key);
    const bucket = this.bucket(hash).slice();
    const place = placeIn(bucket, key);
    if (place < 0) bucket.push([key, value]);
    else bucket[place] = [key, value];
    return this.replacing(hash, bucket, place < 0 ? this.size + 1 : this.size);
  }

  without(key: string): PersistentMap<V> {
    const hash = hashOf(key);
    const bucket = this.bucket(hash);
    const place = placeIn(bucket, key);
    return place < 0 ? this : this.replacing(hash, bucket.toSpliced(place, 1), this.size - 1);
  }

  *entries(): IterableIterator<readonly [string, V]> {
    for (const branch of this.branches) for (const bucket of branch) yield* bucket;
  }

  *values(): IterableIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }

  private bucket(hash: number): Bucket<V> {
    return (this.branches[branchOf(hash)] as Branch<V>)[bucketOf(hash)] as Bucket<V>;
  }

  private replacing(hash: number, bucket: Bucket<V>, size: number): PersistentMap<V> {
    const branches = this.branches.slice();
    const branch = (branches[branchOf(hash)] as Branch<V>).slice();
    branch[bucketOf(hash)] = bucket;
    branches[branchOf(hash)] = branch;
    return new PersistentMap<V>(branches, size);
  }
}

function placeIn(bucket: Bucket<unknown>, key: string): number {
  for (let i = 0; i < bucket.length; i++) if ((bucket[i] as Entry<unknown>)[0] === key) return i;
  return -1;
}

function branchOf(hash: number): number {
  return hash & (FORKS - 1);
}

function bucketOf(hash: number): number {
  return (hash >>> FORK_BITS) & (FORKS - 1);
}

function hashOf(key: string): number {
  let hash = 0;
  for (let i = 0; i < key.length; i++) hash = (hash * 31 + key.charCodeAt(i)) | 0;
  return hash ^ (hash >>> 16);
}
