import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { type Caller, Clock, PAYMENT_METHODS, type PaymentMethod, RequestInvoice } from '#application';
import type { RejectionCode } from '#domain';
import { money, plainNumber, Rejection } from '#kernel';
import { readTopup, type TopupView } from '#projections';
import { BooksReader } from '../edge/books-reader.ts';
import { Authenticated } from '../edge/caller.ts';
import { PublicAddress } from '../edge/public-address.ts';
import { json, Operation } from '../openapi/operation.ts';
import { NewTopup } from './topups.requests.ts';
import { PaymentMethods, TopupInvoice, TopupStatus } from './topups.schemas.ts';

const MSAT_DECIMALS = 11;
const METHODS = PAYMENT_METHODS.map(methodWire);

@Controller('topup')
export class TopupsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly books: BooksReader,
    private readonly clock: Clock,
    private readonly address: PublicAddress,
  ) {}

  @Post('create/:method')
  @Operation({
    id: 'createTopup',
    tag: 'Top-ups',
    summary: 'Creates a top-up invoice',
    description: 'The account is credited as soon as the invoice is paid.',
    auth: 'key',
    payer: 'body',
    params: { method: { description: 'A payment method', example: 'btc-lightning' } },
    body: NewTopup,
    example: { amount: 5, currency: 'USD' },
    answer: json(TopupInvoice),
    errors: [404, 502],
  })
  async create(@Authenticated() { accountId }: Caller, @Param('method') method: string, @Body() body: NewTopup) {
    const command = new RequestInvoice(accountId, method, String(body.amount), body.currency.toUpperCase());
    const { topupId, position } = await this.commands.execute(command);
    await this.books.show(position, 'topups');
    const topup = await this.find(topupId);
    const due = coins(topup.msat);
    return {
      ...head(topup),
      checkout_url: `${this.address.url}/topup/status/${topupId}`,
      lightning_invoice: topup.invoice,
      payment_request: topup.invoice,
      crypto_amount_due: due,
    };
  }

  /** Readable by whoever knows the id, which cannot be guessed; tells nothing of the account. */
  @Get('status/:id')
  @Operation({
    id: 'getTopup',
    tag: 'Top-ups',
    summary: 'Returns the status of an invoice',
    auth: 'public',
    params: { id: { description: 'The id of an invoice', example: '8vy58fo1Z8DYdFkUxp9yJd' } },
    answer: json(TopupStatus),
    errors: [404],
  })
  async status(@Param('id') id: string) {
    const topup = await this.find(id);
    const open = topup.status === 'Settled' ? 0n : topup.msat;
    return {
      ...head(topup),
      status: topup.status,
      payment_method: PAYMENT_METHODS.find(({ method }) => method === topup.method)?.displayName ?? topup.method,
      amount_paid: coins(topup.paidMsat),
      amount_due: coins(open),
      lightning_invoice: topup.invoice,
    };
  }

  @Get('payment-methods')
  @Operation({
    id: 'listPaymentMethods',
    tag: 'Top-ups',
    summary: 'Lists the payment methods and their limits',
    auth: 'public',
    answer: json(PaymentMethods),
  })
  methods() {
    return { status: 'success', success: true, supported_methods: METHODS, data: METHODS };
  }

  private async find(topupId: string): Promise<TopupView> {
    const topup = await readTopup(this.books.pool, topupId, this.clock.now());
    if (!topup) throw new Rejection<RejectionCode>('topup_not_found', 'Invoice not found');
    return topup;
  }
}

/** The amount is echoed exactly as it was sent; times are whole Unix seconds. */
function head(topup: TopupView) {
  return {
    invoice_id: topup.topupId,
    amount: plainNumber(money.unscaled(money.scaled(topup.amount, 18), 18)),
    currency: topup.currency,
    created_at: seconds(topup.createdAt),
    expires_at: seconds(topup.expiresAt),
  };
}

/** Whole bitcoins, from millisatoshis. */
function coins(msat: bigint): object {
  return plainNumber(money.unscaled(msat, MSAT_DECIMALS));
}

function seconds(instant: string): number {
  return Math.floor(Date.parse(instant) / 1000);
}

function methodWire({ method, displayName, limits, expiryMinutes, bonus }: PaymentMethod) {
  const numbers = Object.entries(limits).map(([currency, { min, max }]) => [
    currency,
    { min: plainNumber(min), max: plainNumber(max) },
  ]);
  const currencies = Object.keys(limits);
  return {
    method,
    display_name: displayName,
    supported_currencies: currencies,
    limits: Object.fromEntries(numbers),
    expiration_minutes: expiryMinutes,
    bonus,
    min_usd: plainNumber(limits.USD?.min ?? '0'),
    max_usd: plainNumber(limits.USD?.max ?? '0'),
    currencies,
  };
}
