/** Sizes of images and videos: models offer aspect ratios, but clients may also specify pixels. */

/** Matches pixels or a ratio: `1024x1536`, `16:9`. */
const SIZE = /^\s*(\d{1,5})\s*([x×*:])\s*(\d{1,5})\s*$/i;
const RATIO = ':';
/** Ratios whose logarithms differ by less are equal, such as `16:9` and `32:18`. */
const EPSILON = 1e-9;

/**
 * Returns the available ratio that matches a size.
 * @param size a ratio, or pixels, for which the nearest ratio is used
 * @param ratios the available ratios, such as `16:9`
 * @returns undefined if the size is invalid, or no available ratio matches it
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

/** Returns the logarithm of a ratio, so that twice and half a width have the same distance. */
function getLogRatio(width: string | undefined, height: string | undefined): number {
  return Math.log(Number(width) / Number(height));
}
