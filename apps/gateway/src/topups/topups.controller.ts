import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { type Caller, CreateTopup, PaymentMethods, unknownMethodError } from '#application';
import { formatCoins } from '#domain';
import { type Cause, toJsonNumber } from '#kernel';
import { Authenticated, CausedBy } from '../edge/authentication/authenticator.ts';
import { NotFound } from '../edge/errors/errors.ts';
import { Creation } from '../edge/idempotency/creations.ts';
import { PublicAddress } from '../edge/network/public-address.ts';
import { BooksReader } from '../edge/reading/read-model-reader.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './topups.operations.ts';
import { NewTopup } from './topups.requests.ts';
import { checkoutUrl, head, howToPay, methodWire, TOPUP_ID, whereToPay } from './topups-wire.ts';

@Controller('topup')
export class TopupsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly books: BooksReader,
    private readonly address: PublicAddress,
    private readonly offered: PaymentMethods,
  ) {}

  @Post('create/:method')
  @Creation(operations.createTopup)
  async create(
    @Authenticated() { accountId }: Caller,
    @Param('method') method: string,
    @Body() body: NewTopup,
    @CausedBy() cause: Cause,
  ) {
    if (!this.offered.listed.some((each) => each.method === method)) throw unknownMethodError(method);
    const requested = { amount: String(body.amount), currency: body.currency.toUpperCase() };
    const wanted = { method, requested };
    const { topupId, invoice } = await this.commands.execute(new CreateTopup(accountId, wanted, cause));
    const { at: createdAt, expiresAt, destination } = invoice;
    const coin = this.offered.coin(invoice.coin);
    const due = formatCoins(BigInt(invoice.units), coin);
    return {
      ...head({ topupId, requested, createdAt, expiresAt }),
      checkout_url: checkoutUrl(this.address, topupId),
      ...howToPay(destination, coin, due),
      crypto_amount_due: toJsonNumber(due),
    };
  }

  /** Readable with the id alone, which cannot be guessed; reveals nothing of the account. */
  @Get('status/:id')
  @Operation(operations.getTopup)
  async status(@Param('id') id: string) {
    const topup = TOPUP_ID.test(id) ? await this.books.topup(id) : undefined;
    if (!topup) throw new NotFound('Invoice not found');
    const coin = this.offered.coin(topup.coin);
    const left = topup.units - topup.paidUnits;
    return {
      ...head(topup),
      status: topup.status,
      payment_method: this.offered.displayName(topup.method),
      amount_paid: toJsonNumber(formatCoins(topup.paidUnits, coin)),
      amount_due: toJsonNumber(formatCoins(left > 0n && topup.status !== 'Settled' ? left : 0n, coin)),
      ...whereToPay(topup.destination),
    };
  }

  @Get('payment-methods')
  @Operation(operations.listPaymentMethods)
  methods() {
    const methods = this.offered.listed.map(methodWire);
    return { status: 'success', success: true, supported_methods: methods, data: methods };
  }
}
