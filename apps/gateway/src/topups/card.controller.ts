import { Body, Controller, Get, Post, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import {
  CARD_METHOD,
  type Caller,
  CreateTopup,
  generateTopupId,
  NO_BACKEND_MESSAGE,
  PaymentMethods,
} from '#application';
import { Foundation } from '#foundation';
import type { Cause } from '#kernel';
import { CurrentCaller, RequestCause } from '../edge/authentication/authenticator.ts';
import { NotFoundError } from '../edge/errors/errors.ts';
import { Creation } from '../edge/idempotency/creation.ts';
import { PublicBaseUrl } from '../edge/network/public-base-url.ts';
import { Operation } from '../openapi/operation.ts';
import { CARD_HEADERS, renderCardPage } from './card-page.ts';
import * as operations from './topups.operations.ts';
import { NewCardSession } from './topups.requests.ts';
import { toCheckoutUrl, toInvoiceHeader } from './topups-wire.ts';

/** Card payments, for use in a browser. They are not in the public list of payment methods. */
@Controller('topup')
export class CardController {
  constructor(
    private readonly commands: CommandBus,
    private readonly address: PublicBaseUrl,
    private readonly paymentMethods: PaymentMethods,
    private readonly foundation: Foundation,
  ) {}

  @Post('card/session')
  @Creation(operations.createCardSession)
  async create(@CurrentCaller() { accountId }: Caller, @Body() body: NewCardSession, @RequestCause() cause: Cause) {
    const topupId = generateTopupId(this.foundation.runtime);
    const checkout_url = toCheckoutUrl(this.address, topupId);
    const requested = { amount: String(body.amount), currency: (body.currency ?? 'USD').toUpperCase() };
    const params = { method: CARD_METHOD, requested, returnUrl: checkout_url };
    const { invoice } = await this.commands.execute(new CreateTopup(accountId, params, cause, topupId));
    const { at: createdAt, expiresAt, destination } = invoice;
    return {
      ...toInvoiceHeader({ topupId, requested, createdAt, expiresAt }),
      checkout_url,
      payment_page: destination.value,
    };
  }

  @Get('card')
  @Operation(operations.getCardPage)
  getPage(@Res({ passthrough: true }) reply: FastifyReply) {
    const limits = this.paymentMethods.findMethod(CARD_METHOD)?.terms.limits.USD;
    if (!limits)
      throw new NotFoundError(this.paymentMethods.hasBackend ? 'Card payments are not supported' : NO_BACKEND_MESSAGE);
    reply.headers(CARD_HEADERS);
    return renderCardPage(limits);
  }
}
