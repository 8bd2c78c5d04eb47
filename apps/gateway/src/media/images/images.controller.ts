import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Caller,
  GenerateImages,
  type GenerateImagesResult,
  type ImageBody,
  type UploadedImages,
} from '#application';
import { CurrentCaller } from '../../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../../edge/idempotency/paid-request-handler.ts';
import { getRecording } from '../../edge/responses/response-recording.ts';
import { Upload, type UploadedFile } from '../../edge/uploads/upload.ts';
import { jsonContent, Operation, sseContent } from '../../openapi/operation.ts';
import { formatImageEvents, serializeImages, toShortResult } from './image-wire.ts';
import { ImageEditRequest, ImageGenerationRequest } from './images.requests.ts';
import { ImageEvent, ImageList } from './images.schemas.ts';

const ERRORS = [402, 404, 409, 410, 429, 502, 504];
/** Maximum size of each uploaded file. */
const MAX_IMAGE_BYTES = 25 * 1024 * 1024;
/** OpenAI's clients may send several images and a mask. Only the first image is used. */
const MAX_FILES = 17;

/** By `response_format`. */
const DELIVERIES: Readonly<Record<string, 'bytes' | 'addresses'>> = { url: 'addresses', b64_json: 'bytes' };

type ImageRequestBody = ImageBody & { readonly response_format?: string | null; readonly stream?: boolean | null };

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
    summary: 'Generates images',
    description:
      'Options that a model does not have are ignored. The `capabilities` of a model in the list of models have its options; an option that the request omits has the first value. Upscalers, background removers and models that only edit need `image_url`. Each delivered image is charged at its listed price.',
    auth: 'key',
    paid: true,
    payPerRequest: true,
    body: ImageGenerationRequest,
    example: { model: 'black-forest-labs/flux-1-schnell', prompt: 'A counting house' },
    response: { ...jsonContent(ImageList), ...sseContent(ImageEvent) },
    errors: ERRORS,
  })
  async generate(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: ImageGenerationRequest,
  ) {
    await this.generateImages(request, reply, caller, body);
  }

  @Post(['v1/images/edits', 'images/edits'])
  @HttpCode(200)
  @Operation({
    id: 'editImage',
    tag: 'Media',
    summary: 'Generates images from an uploaded image',
    description: 'Like `POST /v1/images/generations`, at the same prices. Only the first of several images is used.',
    auth: 'key',
    paid: true,
    payPerRequest: true,
    upload: { maxBytes: MAX_IMAGE_BYTES, files: ['image', 'mask'], optional: ['mask'], maxFiles: MAX_FILES },
    body: ImageEditRequest,
    example: { model: 'google/nano-banana-2', prompt: 'The same at night' },
    response: { ...jsonContent(ImageList), ...sseContent(ImageEvent) },
    errors: ERRORS,
  })
  async edit(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: ImageEditRequest,
  ) {
    await this.generateImages(request, reply, caller, body);
  }

  private async generateImages(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller | undefined,
    body: ImageRequestBody,
  ): Promise<void> {
    const upload = request.body instanceof Upload ? request.body : undefined;
    const isStreamed = body.stream === true;
    const delivery = isStreamed ? 'bytes' : DELIVERIES[body.response_format ?? ''];
    await this.paid.serveOnce(request, reply, caller, async (payer, connection) => {
      const params = { requestId: request.id, source: getQuerySource(request), connection, delivery };
      const generate = () =>
        this.commands.execute(new GenerateImages(payer, params, body, upload ? getUploadedImages(upload) : undefined));
      const result = await (upload ? upload.retainWhile(generate) : generate());
      const created = Math.floor(Date.now() / 1_000);
      const format = (images: GenerateImagesResult) =>
        isStreamed
          ? formatImageEvents(images, upload ? 'image_edit' : 'image_generation', created)
          : serializeImages(images, created);
      const recording = getRecording(reply);
      const short = recording && toShortResult(result);
      if (short) recording.setShortForm({ body: format(short.result), images: short.images });
      reply.type(isStreamed ? 'text/event-stream; charset=utf-8' : 'application/json').send(format(result));
    });
  }
}

function getUploadedImages({ files }: Upload): UploadedImages {
  const findFile = (name: string) => files.find(({ field }) => field === name);
  return { image: findFile('image') as UploadedFile, mask: findFile('mask') };
}
