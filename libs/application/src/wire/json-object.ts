/** What JSON is made of. */
export type Thing = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Thing {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
