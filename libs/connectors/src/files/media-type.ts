/** Detects the type of a file by its content. Its name and its declared type are not trusted. */
import { fileTypeFromBuffer, fileTypeFromFile } from 'file-type';

/** Detected names of media types and the names that are used here. */
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

/** All other types are unsupported, in particular those that a browser would execute: SVG, HTML, PDF. */
const SUPPORTED_TYPES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/webp',
  'image/gif',
  'video/mp4',
  'video/webm',
  'video/quicktime',
  'video/mpeg',
  'audio/mpeg',
  'audio/mp4',
  'audio/wav',
  'audio/ogg',
  'audio/flac',
  'audio/aac',
]);

/** @returns undefined for an unknown or unsupported type */
export async function detectMediaType(bytes: Uint8Array): Promise<string | undefined> {
  return toSupportedType(await fileTypeFromBuffer(bytes).catch(() => undefined)); // damaged
}

/**
 * Like `detectMediaType`, for a file on disk; reads only the part that is needed.
 * @returns undefined also if the file cannot be read
 */
export async function detectFileType(path: string): Promise<string | undefined> {
  return toSupportedType(await fileTypeFromFile(path).catch(() => undefined)); // damaged, or cannot be read
}

function toSupportedType(detected: { readonly mime: string } | undefined): string | undefined {
  if (detected === undefined) return undefined;
  const type = MEDIA_TYPE_ALIASES[detected.mime] ?? detected.mime;
  return SUPPORTED_TYPES.has(type) ? type : undefined;
}
