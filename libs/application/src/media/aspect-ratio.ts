/** Sizes of pictures: they are sold by their ratio, and clients say pixels as well. */

/** Between numbers of pixels or of a ratio: `1024x1536`, `16:9`. */
const SIZE = /^\s*(\d{1,5})\s*([x×*:])\s*(\d{1,5})\s*$/i;
const RATIO = ':';
/** Two ratios are the same one, as `16:9` and `32:18` are. */
const SAME = 1e-9;

/**
 * @param said a ratio, or pixels, for which the nearest ratio is taken
 * @param ratios what there is to choose from, such as `16:9`
 * @returns undefined where it is neither, or a ratio that there is not
 */
export function toNearestAspectRatio(said: string, ratios: readonly string[]): string | undefined {
  const [, width, mark, height] = SIZE.exec(said) ?? [];
  const wanted = logOf(width, height);
  if (!Number.isFinite(wanted)) return undefined;
  const distances = ratios.map((ratio) => {
    const [w, h] = ratio.split(RATIO);
    return Math.abs(logOf(w, h) - wanted);
  });
  const least = Math.min(...distances);
  return mark !== RATIO || least < SAME ? ratios[distances.indexOf(least)] : undefined;
}

/** By their logarithms twice as wide is as far away as half as wide. */
function logOf(width: string | undefined, height: string | undefined): number {
  return Math.log(Number(width) / Number(height));
}
