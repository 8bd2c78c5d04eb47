/** Whether tests use all their cases, as in `npm run prove:cases`. */
export const USES_ALL_CASES = process.env.TEST_ALL_CASES !== undefined;

/**
 * Selects `count` cases of a long list, spread evenly, so that `npm test` stays short. `npm run prove:cases` runs the
 * same tests with all cases.
 * @param first index of the first selected case, beyond the last one modulo their number. With a number of its own, each
 *   of several tests with the same list selects other cases.
 */
export function sampleCases<T>(cases: readonly T[], count: number, first = 0): readonly T[] {
  const { length } = cases;
  const selected = sampleSize(length, count);
  return Array.from({ length: selected }, (_, i) => cases[(first + Math.floor((i * length) / selected)) % length] as T);
}

/** Returns how many of `all` generated cases a test uses: `count`, or all in `npm run prove:cases`. */
export function sampleSize(all: number, count: number): number {
  return USES_ALL_CASES ? all : Math.min(all, count);
}
