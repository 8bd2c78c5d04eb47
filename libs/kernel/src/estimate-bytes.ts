/** Heap sizes, measured with Node 24. */
const STRING_BYTES = 24;
const BIGINT_BYTES = 24;
const OBJECT_BYTES = 32;
const ARRAY_BYTES = 48;
const SLOT_BYTES = 8;
const COLLECTION_BYTES = 150;
/** Bytes of an entry of a set or map without its key and value. */
const ENTRY_BYTES = 40;
const IMMUTABLE_ENTRY_BYTES = 150;

/**
 * Estimates the memory of a value in bytes: of plain objects, arrays, sets, maps and immutable collections of them.
 * Takes time linear in its number of values, so this is meant for states that stay small.
 */
export function estimateBytes(value: unknown): number {
  if (typeof value === 'string') return STRING_BYTES + value.length;
  if (typeof value === 'bigint') return BIGINT_BYTES;
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value)) return ARRAY_BYTES + sumSlots(value);
  if (!(Symbol.iterator in value)) return OBJECT_BYTES + sumSlots(Object.values(value));
  const entryBytes = value instanceof Set || value instanceof Map ? ENTRY_BYTES : IMMUTABLE_ENTRY_BYTES;
  let bytes = COLLECTION_BYTES;
  for (const entry of value as Iterable<unknown>) {
    bytes += entryBytes + (Array.isArray(entry) ? sumSlots(entry) : estimateBytes(entry));
  }
  return bytes;
}

function sumSlots(values: readonly unknown[]): number {
  return values.reduce<number>((sum, value) => sum + SLOT_BYTES + estimateBytes(value), 0);
}
