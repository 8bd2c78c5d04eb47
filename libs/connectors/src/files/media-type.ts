/** What a file is, by its content: what its name or its sender says of it is not believed. */
import { fileTypeFromBuffer, fileTypeFromFile } from 'file-type';

/** Other names of the same, by the one that is used here. */
const MEDIA_TYPE_ALIASES: Readonly<Record<string, string>> = {
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
const SUPPORTED_TYPES: ReadonlySet<string> = new Set([
  ...['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  ...['video/mp4', 'video/webm', 'video/quicktime', 'video/mpeg'],
  ...['audio/mpeg', 'audio/mp4', 'audio/wav', 'audio/ogg', 'audio/flac', 'audio/aac'],
]);

/** @returns undefined where it is none of the types that are known here */
export async function detectMediaType(bytes: Uint8Array): Promise<string | undefined> {
  return toSupportedType(await fileTypeFromBuffer(bytes).catch(() => undefined));
}

/** The same of a file on disk, of which only as much is read as is needed. */
export async function detectFileType(path: string): Promise<string | undefined> {
  return toSupportedType(await fileTypeFromFile(path).catch(() => undefined));
}

function toSupportedType(detected: { readonly mime: string } | undefined): string | undefined {
  if (detected === undefined) return undefined;
  const type = MEDIA_TYPE_ALIASES[detected.mime] ?? detected.mime;
  return SUPPORTED_TYPES.has(type) ? type : undefined;
}
