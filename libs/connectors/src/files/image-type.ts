/** Pictures, judged by their heads alone: nothing is unpacked here. */
import { open } from 'node:fs/promises';
import { imageSize } from 'image-size';
import { detectFileType, detectMediaType } from './media-type.ts';

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
/** A few kilobytes can unpack to gigabytes. 100 million pixels are more than any camera and any model has. */
const MAX_PIXELS = 100_000_000;
const MAX_SIDE = 32_768;
/** Cameras write their notes, with a small picture among them, before they say how large it is. */
const HEAD_BYTES = 1024 * 1024;

/** @returns the type of a picture that may be unpacked; undefined where it is none, or one that is too large to be honest */
export async function detectImageType(bytes: Uint8Array): Promise<string | undefined> {
  const mediaType = await detectMediaType(bytes);
  return mediaType !== undefined && IMAGE_TYPES.has(mediaType) && hasSafeDimensions(bytes) ? mediaType : undefined;
}

/** @returns what a file on disk is; undefined for what is not known here, and for a picture that nobody should unpack */
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
    return false;
  }
}
