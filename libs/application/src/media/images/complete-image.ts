/** Checks that an image is complete: viewers show a truncated image only in part or not at all. */
import type { SourceImage } from '../../providers/media-calls.ts';

/** Some programs write a few bytes after the end. */
const MAX_TRAILING_BYTES = 4_096;
const PNG_END = Buffer.from('IEND', 'latin1');
const JPEG_END = Buffer.from([0xff, 0xd9]);
const RIFF_HEADER = 8;

export function isCompleteImage({ mediaType, bytes }: SourceImage): boolean {
  const image = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tail = image.subarray(-MAX_TRAILING_BYTES);
  if (mediaType === 'image/png') return tail.includes(PNG_END);
  if (mediaType === 'image/jpeg') return tail.includes(JPEG_END);
  // The header of a WebP file contains its length.
  return image.length >= 2 * RIFF_HEADER && image.length >= image.readUInt32LE(4) + RIFF_HEADER;
}
