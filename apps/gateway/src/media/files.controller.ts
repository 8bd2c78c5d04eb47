/** Serves stored files by their signed URLs, without a credential. */
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FileStore, LinkSigner, toFilePath } from '#application';
import { ForbiddenError, NotFoundError } from '../edge/errors/errors.ts';
import { Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { FILE_CONTENT, sendFile } from './send-file.ts';

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
