/** Serves stored files by their signed URLs, without a credential. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ByteRange, FileStore, LinkSigner, type StoredFile, toFilePath } from '#application';
import { ForbiddenError, NotFoundError, RangeNotSatisfiableError } from '../edge/errors/errors.ts';
import { Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
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

const FILE_CONTENT = Object.fromEntries(
  Object.keys(EXTENSIONS).map((contentMediaType) => [contentMediaType, { type: 'string', contentMediaType }]),
);

/** The query parameters of a signed URL. */
class SignatureQuery {
  @Field({ type: 'string', description: 'When the URL expires, in Unix seconds' }, true)
  exp!: string;

  @Field({ type: 'string', description: 'The signature of the URL' }, true)
  sig!: string;
}

@Controller()
export class FilesController {
  constructor(
    private readonly files: FileStore,
    private readonly signer: LinkSigner,
  ) {}

  @Get(['v1/media/:id/:n', 'media/:id/:n'])
  @Operation({
    id: 'getMedia',
    tag: 'Media',
    summary: 'Returns a file by its signed URL',
    description:
      'Responses with generated media contain signed URLs. Such a URL is valid for GET and HEAD, needs no credential, and expires at most 24 hours after it was issued. Range requests are supported.',
    auth: 'public',
    cacheable: true,
    params: {
      id: { description: 'The id of the generated result', example: 'gen_0a1b2c00112233445566778899aabbccddeeff' },
      n: { description: 'The index of the file, from 0', example: '0' },
    },
    query: SignatureQuery,
    response: FILE_CONTENT,
    errors: [403, 404, 416, 503],
    otherResponses: { 206: FILE_CONTENT, 304: {} },
  })
  async get(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { id, n } = request.params as { readonly id: string; readonly n: string };
    const checked = this.signer.check('file', toFilePath(id, n), request.query as object);
    if (!checked.ok)
      throw new ForbiddenError(
        checked.reason === 'expired' ? 'The signed URL has expired' : 'The signed URL is invalid',
      );
    const file = await this.files.find({ id, n: Number(n) });
    if (file === undefined) throw new NotFoundError('The file no longer exists');
    sendFile(request, reply, { file, name: `${id}-${n}`, seconds: checked.seconds });
  }
}

interface FileDelivery {
  readonly file: StoredFile;
  readonly name: string;
  /** Remaining lifetime of the signed URL. */
  readonly seconds: number;
}

function sendFile(
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
