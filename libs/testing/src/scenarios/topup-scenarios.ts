/** Top-ups, up to some point: invoices, what is paid on them, and what of that is taken back. */
import {
  type AccountCommand,
  type DomainEvent,
  type ReportedPayment,
  type TopupCommand,
  type TopupState,
  toPaymentKey,
} from '#domain';
import { money, type PicoUsd } from '#kernel';
import { issuedInvoice, paymentOf } from './top-ups.ts';

const EXPIRY_MS = 15 * 60_000;

interface Payee {
  readonly nr: number;
  readonly accountId: string;
}

interface Story {
  readonly facts: readonly DomainEvent[];
  readonly topups: ReadonlyMap<string, TopupState>;
  getInstant(inMs?: number): string;
  account(nr: number, command: AccountCommand): void;
  topup(id: string, command: TopupCommand): void;
}

export interface PaidTopup {
  /** Null: not paid yet. */
  readonly msat: bigint | null;
  readonly lateRate?: string | null;
  readonly credited: boolean;
  /** Whether half of it is taken back again. */
  readonly reversed?: boolean;
}

/** An invoice of a dollar, and what came of it. */
export function liveTopup(
  story: Story,
  { nr, accountId }: Payee,
  { msat, lateRate, credited, reversed }: PaidTopup,
): void {
  const at = story.getInstant();
  const id = `t${story.topups.size}`;
  const reference = `hash of ${id}`;
  const confirmations = story.topups.size % 2;
  const data = issuedInvoice({
    accountId,
    reference,
    confirmations,
    expiresAt: story.getInstant(EXPIRY_MS),
    at,
  });
  story.topup(id, { type: 'IssueInvoice', data });
  if (msat === null) return;
  const market = lateRate ? { market: valued(msat, lateRate, at) } : {};
  const late =
    lateRate && confirmations === 0 ? { receivedAt: new Date(Date.parse(data.expiresAt) + 1).toISOString() } : {};
  const payment = paymentOf(data, { units: msat, ...market, ...late });
  story.topup(id, { type: 'RecordPayment', data: { ...payment, confirmations: 0 } });
  story.topup(id, { type: 'RecordPayment', data: payment });
  const received = story.facts.at(-1);
  if (!credited || received?.type !== 'PaymentReceived') return;
  const booked = { amount: BigInt(received.data.amount) as PicoUsd, bonus: BigInt(received.data.bonus) as PicoUsd };
  story.account(nr, {
    type: 'AddCredit',
    data: { creditId: toPaymentKey(payment.payment), method: data.method, ...booked, at },
  });
  story.topup(id, { type: 'MarkCredited', data: { payment: payment.payment, at } });
  if (reversed) reverse(story, id, payment);
}

/** What so many millisatoshis are worth at a rate. */
function valued(msat: bigint, value: string, at: string) {
  return { rate: { value, source: 'kraken', at }, amount: ((msat * money.parseUsd(value)) / 10n ** 11n) as PicoUsd };
}

function reverse(story: Story, id: string, whole: ReportedPayment): void {
  const { payment, at, units } = whole;
  const reversalId = `reversal of ${id}`;
  const reversals = [{ id: reversalId, units: -(units + 1n) / 2n, why: 'refunded' }];
  const fees = [{ id: 'liquidity', units: units / 10n, why: 'a channel was opened' }];
  story.topup(id, { type: 'RecordPayment', data: { ...whole, fees, reversals } });
  const fact = story.facts.at(-1);
  if (fact?.type !== 'PaymentReversed') return;
  const { method, why } = fact.data;
  const booked = { amount: BigInt(fact.data.amount) as PicoUsd, bonus: BigInt(fact.data.bonus) as PicoUsd };
  const data = { reversalId, creditId: toPaymentKey(payment), method, ...booked, why, at };
  story.account(Number(fact.data.accountId.slice(-1)), { type: 'ReverseCredit', data });
}
