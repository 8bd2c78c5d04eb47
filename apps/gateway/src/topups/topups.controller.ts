import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { type Caller, CreateTopup, createMethodError, PaymentMethods } from '#application';
import { formatCoins } from '#domain';
import { type Cause, toJsonNumber } from '#kernel';
import { CurrentCaller, RequestCause } from '../edge/authentication/authenticator.ts';
import { NotFoundError } from '../edge/errors/errors.ts';
import { Creation } from '../edge/idempotency/creation.ts';
import { PublicBaseUrl } from '../edge/network/public-base-url.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './topups.operations.ts';
import { NewTopup } from './topups.requests.ts';
import { TOPUP_ID, toCheckoutUrl, toDestinationFields, toInvoiceHeader, toPaymentFields } from './topups-wire.ts';

@Controller('topup')
export class TopupsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly readModels: ReadModelReader,
    private readonly address: PublicBaseUrl,
    private readonly paymentMethods: PaymentMethods,
  ) {}

  @Post('create/:method')
  @Creation(operations.createTopup)
  async create(
    @CurrentCaller() { accountId }: Caller,
    @Param('method') method: string,
    @Body() body: NewTopup,
    @RequestCause() cause: Cause,
  ) {
    if (!this.paymentMethods.publicMethods.some((entry) => entry.method === method))
      throw createMethodError(method, this.paymentMethods);
    const requested = { amount: String(body.amount), currency: body.currency.toUpperCase() };
    const params = { method, requested };
    const { topupId, invoice } = await this.commands.execute(new CreateTopup(accountId, params, cause));
    const { at: createdAt, expiresAt, destination } = invoice;
    const coin = this.paymentMethods.getCoin(invoice.coin);
    const due = formatCoins(BigInt(invoice.units), coin);
    return {
      ...toInvoiceHeader({ topupId, requested, createdAt, expiresAt }),
      checkout_url: toCheckoutUrl(this.address, topupId),
      ...toPaymentFields(destination, coin, due),
      crypto_amount_due: toJsonNumber(due),
    };
  }

  /** Requires only the id, which cannot be guessed. Reveals nothing about the account. */
  @Get('status/:id')
  @Operation(operations.getTopup)
  async getStatus(@Param('id') id: string) {
    const topup = TOPUP_ID.test(id) ? await this.readModels.findTopup(id) : undefined;
    if (!topup) throw new NotFoundError('Invoice not found');
    const coin = this.paymentMethods.getCoin(topup.coin);
    const remaining = topup.units - topup.paidUnits;
    return {
      ...toInvoiceHeader(topup),
      status: topup.status,
      payment_method: this.paymentMethods.getDisplayName(topup.method),
      amount_paid: toJsonNumber(formatCoins(topup.paidUnits, coin)),
      amount_due: toJsonNumber(formatCoins(remaining > 0n && topup.status !== 'Settled' ? remaining : 0n, coin)),
      ...toDestinationFields(topup.destination),
    };
  }
}
