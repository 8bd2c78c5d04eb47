import { Body, Controller, Get, Param, Post, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { type Caller, Clock, CreateTopup, PaymentBackends, TOPUP_ID_LENGTH } from '#application';
import { COINS, type Coin, type Destination, PAYMENT_METHODS, type PaymentMethod, wholeCoins } from '#domain';
import { type Cause, money, plainNumber } from '#kernel';
import type { TopupView } from '#projections';
import { BooksReader } from '../edge/books-reader.ts';
import { Authenticated, CausedBy } from '../edge/caller.ts';
import { NotFound } from '../edge/errors.ts';
import { PublicAddress } from '../edge/public-address.ts';
import { json, Operation } from '../openapi/operation.ts';
import { NewTopup } from './topups.requests.ts';
import { PaymentMethods, TopupInvoice, TopupStatus } from './topups.schemas.ts';

const TOPUP_ID = new RegExp(`^[A-Za-z0-9]{${TOPUP_ID_LENGTH}}$`);

@Controller('topup')
export class TopupsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly books: BooksReader,
    private readonly clock: Clock,
    private readonly address: PublicAddress,
    private readonly backends: PaymentBackends,
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
  async create(
    @Authenticated() { accountId }: Caller,
    @Param('method') method: string,
    @Body() body: NewTopup,
    @CausedBy() cause: Cause,
  ) {
    const wanted = { amount: String(body.amount), currency: body.currency.toUpperCase() };
    const { topupId, invoice } = await this.commands.execute(new CreateTopup(accountId, method, wanted, cause));
    const { requested, at: createdAt, expiresAt, destination, coin } = invoice;
    const due = wholeCoins(BigInt(invoice.units), coin);
    return {
      ...head({ topupId, requested, createdAt, expiresAt }),
      checkout_url: `${this.address.url}/topup/status/${topupId}`,
      ...howToPay(destination, coin, due),
      crypto_amount_due: plainNumber(due),
    };
  }

  /** Readable with the id alone, which cannot be guessed; reveals nothing of the account. */
  @Get('status/:id')
  @Operation({
    id: 'getTopup',
    tag: 'Top-ups',
    summary: 'Returns the status of an invoice',
    auth: 'public',
    params: { id: { description: 'The id of an invoice', example: '8vy58fo1Z8DYdFkUxp9yJd' } },
    answer: json(TopupStatus),
    errors: [404, 503],
    follows: true,
  })
  async status(@Param('id') id: string, @Res({ passthrough: true }) reply: FastifyReply) {
    const topup = TOPUP_ID.test(id) ? await this.books.topup(id, this.clock.now(), reply) : undefined;
    if (!topup) throw new NotFound('Invoice not found');
    const { coin } = topup;
    const open = topup.status === 'Settled' ? 0n : topup.units;
    return {
      ...head(topup),
      status: topup.status,
      payment_method: PAYMENT_METHODS.find(({ method }) => method === topup.method)?.displayName ?? topup.method,
      amount_paid: plainNumber(wholeCoins(topup.paidUnits, coin)),
      amount_due: plainNumber(wholeCoins(open, coin)),
      ...whereToPay(topup.destination),
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
    const methods = PAYMENT_METHODS.filter((method) => this.backends.of(method)).map(methodWire);
    return { status: 'success', success: true, supported_methods: methods, data: methods };
  }
}

/** The amount is echoed exactly as it was sent; times are whole Unix seconds. */
function head({
  topupId,
  requested,
  createdAt,
  expiresAt,
}: Pick<TopupView, 'topupId' | 'requested' | 'createdAt' | 'expiresAt'>) {
  return {
    invoice_id: topupId,
    amount: plainNumber(money.unscaled(money.scaled(requested.amount, 18), 18)),
    currency: requested.currency,
    created_at: seconds(createdAt),
    expires_at: seconds(expiresAt),
  };
}

/** The destination under the names that clients look for. */
function whereToPay({ kind, value }: Destination) {
  switch (kind) {
    case 'bolt11':
      return { lightning_invoice: value };
    case 'address':
      return { address: value };
    case 'page':
      return { payment_page: value };
    default:
      return kind satisfies never;
  }
}

/** The destination in a form that wallets accept. */
function howToPay(destination: Destination, coin: Coin, due: string) {
  const { kind, value } = destination;
  const { scheme, amount } = COINS[coin].link;
  const where = whereToPay(destination);
  if (kind === 'bolt11') return { ...where, payment_request: value };
  return kind === 'address' ? { ...where, payment_uri: `${scheme}:${value}?${amount}=${due}` } : where;
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
    bonus: bonus?.description ?? null,
    min_usd: plainNumber(limits.USD?.min ?? '0'),
    max_usd: plainNumber(limits.USD?.max ?? '0'),
    currencies,
  };
}
