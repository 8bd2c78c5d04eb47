import {
  type Coin,
  type Payment,
  type PaymentReceived,
  type PaymentReversed,
  paymentKey,
  type Reversal,
} from '#domain';
import { type Cause, money, startedBy } from '#kernel';
import type { Clock } from '../clock.ts';
import type { Accounts, Topups } from '../streams.ts';
import type { ExchangeRates } from './exchange-rates.ts';
import type { BackendPayment } from './payment-backend.ts';

/** A payment that reached the back end this long after the expiry was still on its way in time. */
const GRACE_MS = 60_000;
/** Whoever looks at back ends. All facts of a top-up belong to its id. */
const WATCH = 'saga:invoice-watch';

/** A top-up as far as its payments need it. */
export interface AwaitedTopup {
  readonly topupId: string;
  readonly coin: Coin;
  readonly backend: string;
  readonly reference: string;
  readonly expiresAt: string;
}

/** A payment that changes the balance of its account. */
export interface Crediting {
  readonly topupId: string;
  readonly payment: PaymentReceived | PaymentReversed;
  readonly cause: Cause;
}

/** Records a payment, credits it, and marks it as credited. Safe to repeat, and to break off anywhere. */
export class TopupPayments {
  constructor(
    private readonly topups: Topups,
    private readonly accounts: Accounts,
    private readonly rates: ExchangeRates,
    private readonly clock: Clock,
  ) {}

  /** @throws UpstreamFailure when a late payment needs a rate and there is none: ask again later */
  async record({ topupId, coin, backend, expiresAt }: AwaitedTopup, came: BackendPayment): Promise<void> {
    const { id, units, fee, confirmations, receivedAt } = came;
    const late = Date.parse(receivedAt) > Date.parse(expiresAt) + GRACE_MS;
    const data: Payment = {
      ...{ payment: { backend, id }, units, confirmations, receivedAt },
      ...(fee === undefined ? {} : { fee }),
      ...(late ? { lateRate: await this.rates.usdPer(coin) } : {}),
      at: this.clock.now(),
    };
    await this.topups.run(topupId, { type: 'RecordPayment', data }, startedBy(WATCH, topupId));
  }

  /** Does to the account what a payment asks for: credits it, or takes its credit back. */
  async credit({ topupId, payment, cause }: Crediting): Promise<void> {
    if (payment.type === 'PaymentReceived') await this.addCredit(topupId, payment.data, cause);
    else await this.reverseCredit(payment.data, cause);
  }

  private async addCredit(topupId: string, received: PaymentReceived['data'], cause: Cause): Promise<void> {
    const { accountId, method, payment } = received;
    const booked = { amount: money.fromJson(received.amount), bonus: money.fromJson(received.bonus) };
    const at = this.clock.now();
    const credit = { creditId: paymentKey(payment), method, ...booked, at };
    await this.accounts.run(accountId, { type: 'AddCredit', data: credit }, cause);
    await this.topups.run(topupId, { type: 'MarkCredited', data: { payment, at } }, cause);
  }

  /** Records that a payment was taken back, or given again. */
  async reverse(topupId: string, reversal: Omit<Reversal, 'at'>): Promise<void> {
    await this.topups.run(
      topupId,
      { type: 'ReversePayment', data: { ...reversal, at: this.clock.now() } },
      startedBy(WATCH, topupId),
    );
  }

  /** Takes the credit of a reversed payment back, also where the balance falls below zero. */
  private async reverseCredit(reversed: PaymentReversed['data'], cause: Cause): Promise<void> {
    const { accountId, payment, method, why } = reversed;
    const reversalId = paymentKey({ backend: payment.backend, id: reversed.reversalId });
    const booked = { amount: money.fromJson(reversed.amount), bonus: money.fromJson(reversed.bonus) };
    const data = { reversalId, creditId: paymentKey(payment), method, ...booked, why, at: this.clock.now() };
    await this.accounts.run(accountId, { type: 'ReverseCredit', data }, cause);
  }
}
