/** Detects images by their first bytes, without decoding them. */
import { open } from 'node:fs/promises';
import { imageSize } from 'image-size';
import { detectFileType, detectMediaType } from './media-type.ts';

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
/** A few kilobytes can decode to gigabytes. Hardly any camera, and no model, produces more pixels than this. */
const MAX_PIXELS = 100_000_000;
const MAX_SIDE = 32_768;
/** Cameras write metadata with a preview image before the size of the image. */
const HEAD_BYTES = 1024 * 1024;

/**
 * Returns the type of an image that is safe to decode; undefined for other files, and for images whose size is
 * implausible or cannot be read.
 */
export async function detectImageType(bytes: Uint8Array): Promise<string | undefined> {
  const mediaType = await detectMediaType(bytes);
  return mediaType !== undefined && IMAGE_TYPES.has(mediaType) && hasSafeDimensions(bytes) ? mediaType : undefined;
}

/**
 * Returns the type of a file on disk; undefined for an unsupported type and for an image that is not safe to decode.
 */
export async function detectSafeFileType(path: string): Promise<string | undefined> {
  const mediaType = await detectFileType(path);
  return mediaType === undefined || !IMAGE_TYPES.has(mediaType) ? mediaType : detectImageType(await readHead(path));
}

async function readHead(path: string): Promise<Uint8Array> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function hasSafeDimensions(bytes: Uint8Array): boolean {
  try {
    const { width, height } = imageSize(bytes);
    return Math.min(width, height) > 0 && Math.max(width, height) <= MAX_SIDE && width * height <= MAX_PIXELS;
  } catch {
    return false; // no image that the parser can read
  }
}
