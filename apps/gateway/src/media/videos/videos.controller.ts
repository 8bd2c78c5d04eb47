import { Body, Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Caller,
  type Clock,
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
import { ForbiddenError, NotFoundError, UnauthorizedError } from '../../edge/errors/errors.ts';
import { getQuerySource, PaidRequestHandler } from '../../edge/idempotency/paid-request-handler.ts';
import type { AnonymousCaller } from '../../edge/pay-per-request/pay-per-request-gate.ts';
import { Operation } from '../../openapi/operation.ts';
import { POLL_INTERVAL_SECONDS, toSubmittedVideoJson, toVideoStatusJson } from './video-wire.ts';
import * as operations from './videos.operations.ts';
import { StatusQuery, VideoRequest } from './videos.requests.ts';

const ID = /^gen_[0-9a-f]{32}$/;
const VIDEO_NOT_FOUND = 'Video not found';
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
    await this.paid.serveOnce(request, reply, caller, {
      serve: async (payer, connection) => {
        const params = { requestId: request.id, caller, source: getQuerySource(request), connection };
        const { id, video } = await this.commands.execute(new RequestVideo(payer, params, body));
        reply.status(202).header('retry-after', POLL_INTERVAL_SECONDS).send(this.toResponse(id, video));
      },
      recoverResponse: (requestId) => this.recoverResponse(requestId, caller === undefined),
    });
  }

  @Get(['v1/videos/:id', 'videos/:id'])
  @Operation(operations.getVideo)
  async get(
    @Param('id') id: string,
    @Query() query: StatusQuery,
    @Req() { caller, anonymousCaller }: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { videos, signer, links, clock } = this.dependencies;
    const isSigned = query.sig !== undefined || query.exp !== undefined;
    if (isSigned) {
      const checked = signer.check('status', toStatusPath(id), query);
      if (!checked.ok)
        throw new ForbiddenError(
          checked.reason === 'expired' ? 'The signed URL has expired' : 'The signed URL is invalid',
        );
    } else if (!caller && !anonymousCaller) throw new UnauthorizedError(NO_CREDENTIAL);
    if (!ID.test(id)) throw new NotFoundError(VIDEO_NOT_FOUND);
    const video = await videos.read(id);
    const { request } = video;
    if (!request || !(isSigned || isPayer(request, caller, anonymousCaller))) throw new NotFoundError(VIDEO_NOT_FOUND);
    const response = toVideoStatusJson(id, request, video, { links, now: clock.nowMs() });
    if (response.status === 'pending') reply.status(202).header('retry-after', POLL_INTERVAL_SECONDS);
    return response;
  }

  private toResponse(id: string, { request }: VideoState) {
    if (!request) throw new Error('a submitted video has no request');
    return toSubmittedVideoJson(id, request, this.dependencies.links);
  }

  /**
   * Returns the response to an earlier request whose gateway died after the first event of the video. The job of the
   * video does not depend on that gateway.
   * @returns undefined if there is no such video, or if the video failed and was paid per request
   */
  private async recoverResponse(requestId: string, isPaidPerRequest: boolean) {
    const id = toVideoId(requestId, this.dependencies.secrets);
    const video = await this.dependencies.videos.read(id);
    if (!video.request) return undefined;
    // A failed video is not charged. The payment is for the request and not for one attempt, so it may be used again.
    if (isPaidPerRequest && video.failure) return undefined;
    const headers = { 'content-type': 'application/json; charset=utf-8', 'retry-after': POLL_INTERVAL_SECONDS };
    return { status: 202, headers, body: Buffer.from(JSON.stringify(this.toResponse(id, video))) };
  }
}
