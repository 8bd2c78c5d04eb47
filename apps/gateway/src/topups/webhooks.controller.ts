import { Controller, HttpCode, Param, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PaymentBackendRegistry, TopupPollTrigger } from '#application';
import { NotFoundError, UnauthorizedError } from '../edge/errors/errors.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './topups.operations.ts';

/**
 * Webhooks of payment backends. A webhook only triggers a poll of the top-ups that it names, so one that is repeated,
 * delayed, reordered or replayed credits nothing twice.
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
    if (!backend?.parseWebhook) throw new NotFoundError('No webhook for this payment backend');
    const references = await backend.parseWebhook({ headers, body: Buffer.isBuffer(body) ? body : Buffer.alloc(0) });
    if (!references) throw new UnauthorizedError('The signature of the webhook is missing or invalid');
    if (references.length > 0) await this.pollTrigger.wake(name, references);
    return { status: 'success' };
  }
}
