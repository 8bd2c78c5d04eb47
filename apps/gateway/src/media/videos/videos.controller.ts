import { Body, Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Caller,
  type Clock,
  type FileStore,
  type LinkSigner,
  type MediaLinks,
  RequestVideo,
  type Secrets,
  type Streams,
  toStatusPath,
  toVideoId,
} from '#application';
import { CHALLENGE, type VideoRequested, type VideoState } from '#domain';
import { toStreamName } from '#kernel';
import { CurrentCaller } from '../../edge/authentication/authenticator.ts';
import { isOpenRouterSdk } from '../../edge/errors/error-formats.ts';
import { BadRequestError, ForbiddenError, NotFoundError, UnauthorizedError } from '../../edge/errors/errors.ts';
import { getQuerySource, PaidRequestHandler } from '../../edge/idempotency/paid-request-handler.ts';
import type { AnonymousCaller } from '../../edge/pay-per-request/pay-per-request-gate.ts';
import type { ReadModelReader } from '../../edge/reading/read-model-reader.ts';
import { Upload } from '../../edge/uploads/upload.ts';
import { Operation } from '../../openapi/operation.ts';
import { sendFile } from '../send-file.ts';
import { toVideoBody } from './video-body.ts';
import {
  getFileEndMs,
  hasEnded,
  POLL_HEADERS,
  parseVideoId,
  toSubmittedVideoJson,
  toVideoStatusJson,
  type VideoReference,
} from './video-wire.ts';
import * as operations from './videos.operations.ts';
import { StatusQuery, VideoContentQuery, VideoRequest, VideosQuery } from './videos.requests.ts';

const VIDEO_NOT_FOUND = 'Video not found';
const DEFAULT_PAGE_SIZE = 20;
const NO_CREDENTIAL =
  'Missing credential: send "Authorization: Bearer <API key>" or x-api-key, or use the status_url of the video';

/** Checks whether the caller acts for the account of the video, or presents the proof of payment for the video. */
function isPayer(
  { accountId, hold }: VideoRequested['data'],
  caller?: Caller,
  anonymousCaller?: AnonymousCaller,
): boolean {
  if (caller) return caller.accountId === accountId;
  return (
    anonymousCaller !== undefined &&
    'proof' in anonymousCaller &&
    toStreamName(CHALLENGE, anonymousCaller.proof.challengeId) === hold.payer
  );
}

export abstract class VideosControllerDependencies {
  abstract readonly videos: Streams['videos'];
  abstract readonly files: FileStore;
  abstract readonly readModels: ReadModelReader;
  abstract readonly links: MediaLinks;
  abstract readonly signer: LinkSigner;
  abstract readonly secrets: Secrets;
  abstract readonly clock: Clock;
}

@Controller()
export class VideosController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
    private readonly dependencies: VideosControllerDependencies,
  ) {}

  @Post(['v1/videos', 'videos'])
  @HttpCode(202)
  @Operation(operations.createVideo)
  async create(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: VideoRequest,
  ): Promise<void> {
    const { body: videoBody, uploaded } = toVideoBody(body, request.body);
    // Only OpenAI's clients send a form.
    const isOpenAi = request.body instanceof Upload;
    await this.paid.serveOnce(request, reply, caller, {
      serve: async (payer, connection) => {
        const params = { requestId: request.id, caller, source: getQuerySource(request), connection };
        const { id, video } = await this.commands.execute(new RequestVideo(payer, params, videoBody, uploaded));
        reply
          .status(202)
          .headers(POLL_HEADERS)
          .send(this.toResponse({ jobId: id, isOpenAi }, video));
      },
      recoverResponse: (requestId) => this.recoverResponse(requestId, isOpenAi, caller === undefined),
    });
  }

  @Get(['v1/videos', 'videos'])
  @Operation(operations.listVideos)
  async list(
    @CurrentCaller() { accountId }: Caller,
    @Query() { limit, order = 'desc', after }: VideosQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { readModels, videos, links, clock } = this.dependencies;
    const filter = { order, limit: Number(limit ?? DEFAULT_PAGE_SIZE), after: after && parseVideoId(after)?.jobId };
    const page = after && !filter.after ? undefined : await readModels.listVideos(accountId, filter, reply);
    if (!page) throw new BadRequestError('after is not a video of this account', 'after');
    const data = await Promise.all(
      page.ids.map(async (jobId) => {
        const video = await videos.read(jobId);
        if (!video.request) throw new Error(`the listed video ${jobId} has no request`);
        return toVideoStatusJson({ jobId, isOpenAi: true }, video.request, video, { links, now: clock.nowMs() });
      }),
    );
    const [first, last] = [data[0], data.at(-1)];
    return { object: 'list', data, first_id: first?.id ?? null, last_id: last?.id ?? null, has_more: page.hasMore };
  }

  @Get(['v1/videos/:id', 'videos/:id'])
  @Operation(operations.getVideo)
  async get(
    @Param('id') id: string,
    @Query() query: StatusQuery,
    @Req() { caller, anonymousCaller, headers }: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { signer, links, clock } = this.dependencies;
    const isSigned = query.sig !== undefined || query.exp !== undefined;
    if (isSigned) {
      const checked = signer.check('status', toStatusPath(id), query);
      if (!checked.ok)
        throw new ForbiddenError(
          checked.reason === 'expired' ? 'The signed URL has expired' : 'The signed URL is invalid',
        );
    } else if (!caller && !anonymousCaller) throw new UnauthorizedError(NO_CREDENTIAL);
    const { reference, request, video } = await this.findVideo(
      id,
      (data) => isSigned || isPayer(data, caller, anonymousCaller),
    );
    // OpenAI responds to each poll with 200, and OpenRouter's SDK rejects any other status.
    const expectsOk = reference.isOpenAi || isOpenRouterSdk(headers);
    if (!hasEnded(video)) reply.status(expectsOk ? 200 : 202).headers(POLL_HEADERS);
    return toVideoStatusJson(reference, request, video, { links, now: clock.nowMs() });
  }

  @Get(['v1/videos/:id/content', 'videos/:id/content'])
  @Operation(operations.getVideoContent)
  async getContent(
    @Param('id') id: string,
    @Query() _: VideoContentQuery,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { files, clock } = this.dependencies;
    const { caller, anonymousCaller } = request;
    if (!caller && !anonymousCaller) throw new UnauthorizedError(NO_CREDENTIAL);
    const { request: data, video } = await this.findVideo(id, (requested) =>
      isPayer(requested, caller, anonymousCaller),
    );
    if (video.phase !== 'settled')
      throw new NotFoundError(hasEnded(video) ? 'The video has failed' : 'The video is not completed yet');
    const file = await files.find({ id: data.result, n: 0 });
    const seconds = Math.floor((getFileEndMs(data) - clock.nowMs()) / 1_000);
    if (!file || seconds <= 0) throw new NotFoundError('The file no longer exists');
    sendFile(request, reply, { file, name: id, seconds });
  }

  /** @throws NotFoundError if there is no such video, or the caller may not see it */
  private async findVideo(id: string, isAllowed: (request: VideoRequested['data']) => boolean) {
    const reference = parseVideoId(id);
    if (!reference) throw new NotFoundError(VIDEO_NOT_FOUND);
    const video = await this.dependencies.videos.read(reference.jobId);
    const { request } = video;
    if (!request || !isAllowed(request)) throw new NotFoundError(VIDEO_NOT_FOUND);
    return { reference, request, video };
  }

  private toResponse(reference: VideoReference, { request }: VideoState) {
    if (!request) throw new Error('a submitted video has no request');
    return toSubmittedVideoJson(reference, request, this.dependencies.links);
  }

  /**
   * Returns the response to an earlier request whose gateway died after the first event of the video. The job of the
   * video does not depend on that gateway.
   * @returns undefined if there is no such video, or if the video failed and was paid per request
   */
  private async recoverResponse(requestId: string, isOpenAi: boolean, isPaidPerRequest: boolean) {
    const jobId = toVideoId(requestId, this.dependencies.secrets);
    const video = await this.dependencies.videos.read(jobId);
    if (!video.request) return undefined;
    // A failed video is not charged. The payment is for the request and not for one attempt, so it may be used again.
    if (isPaidPerRequest && video.failure) return undefined;
    const headers = { 'content-type': 'application/json; charset=utf-8', ...POLL_HEADERS };
    return { status: 202, headers, body: Buffer.from(JSON.stringify(this.toResponse({ jobId, isOpenAi }, video))) };
  }
}
