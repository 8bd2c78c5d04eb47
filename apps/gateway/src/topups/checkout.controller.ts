import { Controller, Get, Param, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Clock, PaymentMethods } from '#application';
import { NotFoundError } from '../edge/errors/errors.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { Operation } from '../openapi/operation.ts';
import { CHECKOUT_HEADERS, renderCheckoutPage } from './checkout-page.ts';
import * as operations from './topups.operations.ts';
import { TOPUP_ID } from './topups-wire.ts';

@Controller('topup')
export class CheckoutController {
  constructor(
    private readonly readModels: ReadModelReader,
    private readonly paymentMethods: PaymentMethods,
    private readonly clock: Clock,
  ) {}

  /** Requires no credential: the id is sufficient, as for the status of a top-up. */
  @Get('checkout/:id')
  @Operation(operations.getCheckout)
  async getCheckout(@Param('id') id: string, @Res({ passthrough: true }) reply: FastifyReply) {
    const topup = TOPUP_ID.test(id) ? await this.readModels.findTopup(id) : undefined;
    if (!topup) throw new NotFoundError('Invoice not found');
    const displayName = this.paymentMethods.getDisplayName(topup.method);
    const coin = this.paymentMethods.getCoin(topup.coin);
    reply.headers(CHECKOUT_HEADERS);
    return renderCheckoutPage({ ...topup, coin, displayName }, this.clock.now());
  }
}
