/** Pseudo-random numbers: the same seed results in the same wave. */

/** The median of varying response lengths, in tokens. They are log-normal, between the bounds below. */
const MEDIAN = 400;
const MIN_LENGTH = 50;
const MAX_LENGTH = 8_000;
/** The first numbers of neighbouring seeds are similar, so they are skipped. */
const SKIPPED = 8;

/** Returns a generator of numbers above 0 and below 1. */
export function createRandom(seed: number): () => number {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 1) / 4_294_967_297;
  };
  for (let i = 0; i < SKIPPED; i++) random();
  return random;
}

/** Returns log-normal response lengths in tokens, the same ones for the same seed. */
export function sampleLogNormal(count: number, seed: number): readonly number[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
    return Math.round(Math.min(Math.max(MEDIAN * Math.exp(normal), MIN_LENGTH), MAX_LENGTH));
  });
}

export function createEqualLengths(count: number, tokens: number): readonly number[] {
  return Array<number>(count).fill(tokens);
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function mean(values: readonly number[]): number {
  return sum(values) / Math.max(values.length, 1);
}
