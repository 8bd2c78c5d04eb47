/** Sends stored files. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ByteRange, StoredFile } from '#application';
import { RangeNotSatisfiableError } from '../edge/errors/errors.ts';
import type { Content } from '../openapi/operation.ts';
import { parseRange } from './ranges.ts';

/** Lets a browser display a file, but run nothing that the file contains. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox";

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/quicktime': 'mov',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/mp4': 'm4a',
  'audio/ogg': 'ogg',
  'audio/flac': 'flac',
};

function createContent(mediaTypes: readonly string[]): Content {
  return Object.fromEntries(
    mediaTypes.map((contentMediaType) => [contentMediaType, { type: 'string', contentMediaType }]),
  );
}

export const FILE_CONTENT = createContent(Object.keys(EXTENSIONS));
export const VIDEO_CONTENT = createContent(['video/mp4', 'video/webm']);

interface FileDelivery {
  readonly file: StoredFile;
  readonly name: string;
  /** For how long a cache may store the response, if it may at all. */
  readonly seconds: number;
}

/**
 * Sends a file, or the requested range of it.
 * @throws RangeNotSatisfiableError
 */
export function sendFile(
  { headers, method }: FastifyRequest,
  reply: FastifyReply,
  { file, name, seconds }: FileDelivery,
): void {
  const { size, mediaType } = file;
  const etag = toEtag(name, file);
  const requestedRange = parseRange(headers.range, headers['if-range'] as string | undefined, etag, size);
  if (requestedRange.kind === 'none') {
    reply.header('content-range', `bytes */${size}`);
    throw new RangeNotSatisfiableError(`The file has only ${size} bytes`);
  }
  reply.headers({
    etag,
    'cache-control': `private, max-age=${seconds}`,
    'content-security-policy': CONTENT_SECURITY_POLICY,
    'cross-origin-resource-policy': 'cross-origin',
    'accept-ranges': 'bytes',
  });
  if (matchesEtag(headers['if-none-match'], etag)) return void reply.status(304).send();
  const range: ByteRange | undefined = requestedRange.kind === 'part' ? requestedRange.range : undefined;
  if (range) reply.status(206).header('content-range', `bytes ${range.start}-${range.end}/${size}`);
  reply.headers({
    'content-type': mediaType,
    'content-disposition': `inline; filename="${name}.${EXTENSIONS[mediaType] ?? 'bin'}"`,
    'content-length': String(range ? range.end - range.start + 1 : size),
  });
  reply.send(method === 'HEAD' ? Readable.from([]) : Readable.from(file.read(range), { objectMode: false }));
}

/** The content is not needed for the tag, because a file never changes after its URL was issued. */
function toEtag(name: string, { size, mediaType }: StoredFile): string {
  return `"${createHash('sha256').update(`${name} ${size} ${mediaType}`).digest('base64url').slice(0, 22)}"`;
}

function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  return ifNoneMatch?.split(',').some((tag) => [etag, `W/${etag}`, '*'].includes(tag.trim())) ?? false;
}
