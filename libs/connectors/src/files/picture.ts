/** Pictures, judged by their heads alone: nothing is unpacked here. */
import { imageSize } from 'image-size';
import { mediaTypeOf } from './media-type.ts';

const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
/** A few kilobytes can unpack to gigabytes. 100 million pixels are more than any camera and any model has. */
const MAX_PIXELS = 100_000_000;
const MAX_SIDE = 32_768;

/** @returns the type of a picture that may be unpacked; undefined where it is none, or one that is too large to be honest */
export async function pictureTypeOf(bytes: Uint8Array): Promise<string | undefined> {
  const mediaType = await mediaTypeOf(bytes);
  return mediaType !== undefined && PICTURES.has(mediaType) && isHonest(bytes) ? mediaType : undefined;
}

function isHonest(bytes: Uint8Array): boolean {
  try {
    const { width, height } = imageSize(bytes);
    return Math.min(width, height) > 0 && Math.max(width, height) <= MAX_SIDE && width * height <= MAX_PIXELS;
  } catch {
    return false;
  }
}
