import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Caller,
  type DeliveredImage,
  formatSseEvent,
  GenerateImages,
  type GenerateImagesResult,
  type ImageBody,
  type UploadedImages,
} from '#application';
import { toUsdJsonNumber } from '#kernel';
import { CurrentCaller } from '../../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../../edge/idempotency/paid-request-handler.ts';
import { Upload, type UploadedFile } from '../../edge/uploads/upload.ts';
import { jsonContent, Operation, sseContent } from '../../openapi/operation.ts';
import { ImageEditRequest, ImageGenerationRequest } from './images.requests.ts';
import { ImageEvent, ImageList } from './images.schemas.ts';

const ERRORS = [402, 404, 409, 429, 502, 504];
/** Of each file. */
const MAX_PICTURE_BYTES = 25 * 1024 * 1024;
/** OpenAI's clients may send several pictures, of which the first is used, and a mask. */
const MAX_FILES = 17;

type Wanted = ImageBody & { readonly response_format?: string | null; readonly stream?: boolean | null };

@Controller()
export class ImagesController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
  ) {}

  @Post(['v1/images/generations', 'images/generations'])
  @HttpCode(200)
  @Operation({
    id: 'createImages',
    tag: 'Media',
    summary: 'Makes images',
    description:
      'What a model lacks is left aside, and what it has is applied: its `capabilities` in the list of models say what it lets choose, and the first word of each is what a request gets that says nothing. Upscalers, removers of backgrounds and models that only edit need `image_url`. Each image that is delivered is charged at its listed price.',
    auth: 'key',
    paid: true,
    challenge: true,
    body: ImageGenerationRequest,
    example: { model: 'black-forest-labs/flux-1-schnell', prompt: 'A counting house' },
    answer: { ...jsonContent(ImageList), ...sseContent(ImageEvent) },
    errors: ERRORS,
  })
  async generate(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: ImageGenerationRequest,
  ) {
    await this.make(request, reply, caller, body);
  }

  @Post(['v1/images/edits', 'images/edits'])
  @HttpCode(200)
  @Operation({
    id: 'editImage',
    tag: 'Media',
    summary: 'Makes images from one that is sent',
    description: 'As `POST /v1/images/generations`, at the same prices. Of several pictures the first is used.',
    auth: 'key',
    paid: true,
    challenge: true,
    upload: { maxBytes: MAX_PICTURE_BYTES, files: ['image', 'mask'], optional: ['mask'], maxFiles: MAX_FILES },
    body: ImageEditRequest,
    example: { model: 'openai/gpt-image-1.5', prompt: 'The same at night' },
    answer: { ...jsonContent(ImageList), ...sseContent(ImageEvent) },
    errors: ERRORS,
  })
  async edit(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: ImageEditRequest,
  ) {
    await this.make(request, reply, caller, body);
  }

  private async make(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller | undefined,
    body: Wanted,
  ): Promise<void> {
    const upload = request.body instanceof Upload ? request.body : undefined;
    const isStreamed = body.stream === true;
    const isUrl = !isStreamed && (body.response_format ?? (upload ? 'b64_json' : 'url')) === 'url';
    const as = isUrl ? 'addresses' : 'bytes';
    await this.paid.once(request, reply, caller, async (payer, audience) => {
      const asked = {
        requestId: request.id,
        source: getQuerySource(request),
        connection: audience,
        delivery: as,
      } as const;
      const make = () =>
        this.commands.execute(new GenerateImages(payer, asked, body, upload ? picturesOf(upload) : undefined));
      const answer = await (upload ? upload.during(make) : make());
      if (isStreamed)
        reply
          .type('text/event-stream; charset=utf-8')
          .send(streamed(answer, upload ? 'image_edit' : 'image_generation'));
      else reply.type('application/json').send(wire(answer));
    });
  }
}

function picturesOf({ files }: Upload): UploadedImages {
  const file = (name: string) => files.find(({ field }) => field === name);
  return { image: file('image') as UploadedFile, mask: file('mask') };
}

function shown(image: DeliveredImage) {
  const content_type = image.mediaType;
  return 'url' in image
    ? { url: image.url, content_type }
    : { b64_json: Buffer.from(image.bytes).toString('base64'), content_type };
}

/** OpenAI's event of a finished image, for each. No vendor sends images in parts, so there is no other. */
function streamed({ model, images, charged }: GenerateImagesResult, made: 'image_generation' | 'image_edit'): string {
  const type = `${made}.completed`;
  const cost = toUsdJsonNumber(charged);
  const created_at = Math.floor(Date.now() / 1_000);
  return images
    .map((image) => {
      const output_format = image.mediaType.slice('image/'.length);
      return formatSseEvent(JSON.stringify({ type, created_at, model, cost, output_format, ...shown(image) }), type);
    })
    .join('');
}

function wire({ model, images, charged }: GenerateImagesResult): string {
  return JSON.stringify({
    created: Math.floor(Date.now() / 1_000),
    model,
    cost: toUsdJsonNumber(charged),
    data: images.map(shown),
  });
}
