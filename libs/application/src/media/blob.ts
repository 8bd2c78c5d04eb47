import { divide } from '../event-loop.ts';
import type { SourceImage } from '../providers/media-calls.ts';

/**
 * Copies an image to a Blob without holding the event loop. The Blob consists of short sections, so reading it does not
 * hold the event loop either.
 */
export async function toBlob({ bytes, mediaType }: SourceImage): Promise<Blob> {
  const sections: Blob[] = [];
  for await (const section of divide(bytes)) sections.push(new Blob([section as Uint8Array<ArrayBuffer>]));
  return new Blob(sections, { type: mediaType });
}
