import { Controller, HttpCode, Param, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { VideoWebhookReceiver } from '#application';
import { NotFoundError, UnauthorizedError } from '../../edge/errors/errors.ts';
import { Operation } from '../../openapi/operation.ts';
import * as operations from './videos.operations.ts';

/**
 * Receives webhooks of video providers. A webhook provides the provider's id of the video, if the response to its
 * submission was lost, and triggers a poll of the video. The state of the video is always read from the provider.
 */
@Controller()
export class VideoWebhooksController {
  constructor(private readonly receiver: VideoWebhookReceiver) {}

  @Post('v1/videos/webhooks/:vendor/:token')
  @HttpCode(200)
  @Operation(operations.receiveVideoWebhook)
  async receive(
    @Param('vendor') provider: string,
    @Param('token') token: string,
    @Req() { id, headers, body }: FastifyRequest,
  ) {
    const webhook = { headers, body: Buffer.isBuffer(body) ? body : Buffer.alloc(0) };
    const outcome = await this.receiver.receive(provider, token, webhook, id);
    if (outcome === 'unknown') throw new NotFoundError('Webhook not found');
    if (outcome === 'unsigned') throw new UnauthorizedError('The webhook has no valid signature or request id');
    return { status: 'success' };
  }
}
