/** What a file is, by its content: what its name or its sender says of it is not believed. */
import { fileTypeFromBuffer, fileTypeFromFile } from 'file-type';

/** Other names of the same, by the one that is used here. */
const SAME: Readonly<Record<string, string>> = {
  'image/apng': 'image/png',
  'audio/vnd.wave': 'audio/wav',
  'audio/x-wav': 'audio/wav',
  'audio/x-m4a': 'audio/mp4',
  'video/x-m4v': 'video/mp4',
  'audio/x-flac': 'audio/flac',
  'audio/ogg; codecs=opus': 'audio/ogg',
  'video/MP1S': 'video/mpeg',
  'video/MP2P': 'video/mpeg',
};

/** Types that are told apart; anything else is unknown here, above all what a browser would run: SVG, HTML, PDF. */
const KNOWN: ReadonlySet<string> = new Set([
  ...['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  ...['video/mp4', 'video/webm', 'video/quicktime', 'video/mpeg'],
  ...['audio/mpeg', 'audio/mp4', 'audio/wav', 'audio/ogg', 'audio/flac', 'audio/aac'],
]);

/** @returns undefined where it is none of the types that are known here */
export async function detectMediaType(bytes: Uint8Array): Promise<string | undefined> {
  return known(await fileTypeFromBuffer(bytes).catch(() => undefined));
}

/** The same of a file on disk, of which only as much is read as is needed. */
export async function detectFileType(path: string): Promise<string | undefined> {
  return known(await fileTypeFromFile(path).catch(() => undefined));
}

function known(found: { readonly mime: string } | undefined): string | undefined {
  if (found === undefined) return undefined;
  const type = SAME[found.mime] ?? found.mime;
  return KNOWN.has(type) ? type : undefined;
}
