import { Controller, HttpCode, Param, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PaymentBackendRegistry, TopupPollTrigger } from '#application';
import { NotFoundError, UnauthorizedError } from '../edge/errors/errors.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './topups.operations.ts';

/**
 * Web hooks of the back ends that take payments. They are believed no more than that a top-up is worth a look, so one that
 * is repeated, late, reordered or replayed changes nothing.
 */
@Controller('topup')
export class PaymentWebhooksController {
  constructor(
    private readonly backends: PaymentBackendRegistry,
    private readonly pollTrigger: TopupPollTrigger,
  ) {}

  @Post('webhooks/:backend')
  @HttpCode(200)
  @Operation(operations.receivePaymentWebhook)
  async receive(@Param('backend') name: string, @Req() { headers, body }: FastifyRequest) {
    const backend = this.backends.find(name);
    if (!backend?.parseWebhook) throw new NotFoundError('There are no web hooks of such a back end');
    const references = await backend.parseWebhook({ headers, body: Buffer.isBuffer(body) ? body : Buffer.alloc(0) });
    if (!references) throw new UnauthorizedError('The web hook is not signed as it must be');
    if (references.length > 0) await this.pollTrigger.wake(name, references);
    return { status: 'success' };
  }
}
