/**
 * Returns options for an `LRUCache` of lru-cache with up to `maxEntries` entries. With its option `max` alone, a cache
 * allocates the memory for all entries when it is created, which most caches never fill.
 */
export function limitEntries(maxEntries: number): { readonly maxSize: number; sizeCalculation(): number } {
  return { maxSize: maxEntries, sizeCalculation: () => 1 };
}
