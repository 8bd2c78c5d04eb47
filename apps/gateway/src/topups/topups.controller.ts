import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { type Caller, CreateTopup, PaymentMethods, unknownMethodError } from '#application';
import { formatCoins } from '#domain';
import { type Cause, toJsonNumber } from '#kernel';
import { CurrentCaller, RequestCause } from '../edge/authentication/authenticator.ts';
import { NotFoundError } from '../edge/errors/errors.ts';
import { Creation } from '../edge/idempotency/creations.ts';
import { PublicBaseUrl } from '../edge/network/public-address.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './topups.operations.ts';
import { NewTopup } from './topups.requests.ts';
import {
  TOPUP_ID,
  toCheckoutUrl,
  toDestinationFields,
  toInvoiceHeader,
  toPaymentFields,
  toPaymentMethodJson,
} from './topups-wire.ts';

@Controller('topup')
export class TopupsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly books: ReadModelReader,
    private readonly address: PublicBaseUrl,
    private readonly offered: PaymentMethods,
  ) {}

  @Post('create/:method')
  @Creation(operations.createTopup)
  async create(
    @CurrentCaller() { accountId }: Caller,
    @Param('method') method: string,
    @Body() body: NewTopup,
    @RequestCause() cause: Cause,
  ) {
    if (!this.offered.publicMethods.some((each) => each.method === method)) throw unknownMethodError(method);
    const requested = { amount: String(body.amount), currency: body.currency.toUpperCase() };
    const wanted = { method, requested };
    const { topupId, invoice } = await this.commands.execute(new CreateTopup(accountId, wanted, cause));
    const { at: createdAt, expiresAt, destination } = invoice;
    const coin = this.offered.getCoin(invoice.coin);
    const due = formatCoins(BigInt(invoice.units), coin);
    return {
      ...toInvoiceHeader({ topupId, requested, createdAt, expiresAt }),
      checkout_url: toCheckoutUrl(this.address, topupId),
      ...toPaymentFields(destination, coin, due),
      crypto_amount_due: toJsonNumber(due),
    };
  }

  /** Readable with the id alone, which cannot be guessed; reveals nothing of the account. */
  @Get('status/:id')
  @Operation(operations.getTopup)
  async status(@Param('id') id: string) {
    const topup = TOPUP_ID.test(id) ? await this.books.topup(id) : undefined;
    if (!topup) throw new NotFoundError('Invoice not found');
    const coin = this.offered.getCoin(topup.coin);
    const left = topup.units - topup.paidUnits;
    return {
      ...toInvoiceHeader(topup),
      status: topup.status,
      payment_method: this.offered.getDisplayName(topup.method),
      amount_paid: toJsonNumber(formatCoins(topup.paidUnits, coin)),
      amount_due: toJsonNumber(formatCoins(left > 0n && topup.status !== 'Settled' ? left : 0n, coin)),
      ...toDestinationFields(topup.destination),
    };
  }

  @Get('payment-methods')
  @Operation(operations.listPaymentMethods)
  methods() {
    const methods = this.offered.publicMethods.map(toPaymentMethodJson);
    return { status: 'success', success: true, supported_methods: methods, data: methods };
  }
}
