/** Sizes of pictures: they are sold by their ratio, and clients say pixels as well. */

/** Between numbers of pixels or of a ratio: `1024x1536`, `16:9`. */
const SIZE = /^\s*(\d{1,5})\s*([x×*:])\s*(\d{1,5})\s*$/i;
const RATIO = ':';
/** Two ratios are the same one, as `16:9` and `32:18` are. */
const EPSILON = 1e-9;

/**
 * @param size a ratio, or pixels, for which the nearest ratio is taken
 * @param ratios what there is to choose from, such as `16:9`
 * @returns undefined where it is neither, or a ratio that there is not
 */
export function toNearestAspectRatio(size: string, ratios: readonly string[]): string | undefined {
  const [, width, mark, height] = SIZE.exec(size) ?? [];
  const requestedLog = getLogRatio(width, height);
  if (!Number.isFinite(requestedLog)) return undefined;
  const distances = ratios.map((ratio) => {
    const [w, h] = ratio.split(RATIO);
    return Math.abs(getLogRatio(w, h) - requestedLog);
  });
  const minDistance = Math.min(...distances);
  return mark !== RATIO || minDistance < EPSILON ? ratios[distances.indexOf(minDistance)] : undefined;
}

/** By their logarithms twice as wide is as far away as half as wide. */
function getLogRatio(width: string | undefined, height: string | undefined): number {
  return Math.log(Number(width) / Number(height));
}
