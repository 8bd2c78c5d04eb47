/** Runs top-ups up to some point of their life cycle: invoices, their payments and reversals. */
import {
  type AccountCommand,
  type DomainEvent,
  type ReportedPayment,
  type TopupCommand,
  type TopupState,
  toPaymentKey,
} from '#domain';
import { money, type PicoUsd } from '#kernel';
import { createFullPayment, createIssuedInvoice } from './top-ups.ts';

const EXPIRY_MS = 15 * 60_000;

interface Payee {
  readonly accountNumber: number;
  readonly accountId: string;
}

interface TopupHistory {
  readonly events: readonly DomainEvent[];
  readonly topups: ReadonlyMap<string, TopupState>;
  getInstant(inMs?: number): string;
  runAccountCommand(accountNumber: number, command: AccountCommand): void;
  runTopupCommand(id: string, command: TopupCommand): void;
}

export interface PaidTopup {
  /** Paid amount in millisatoshis; null if nothing is paid yet. */
  readonly msat: bigint | null;
  readonly marketRate?: string | null;
  readonly credited: boolean;
  /** Whether half of a credited payment is reversed. */
  readonly reversed?: boolean;
}

/** Issues an invoice of 1 USD and runs its payment. */
export function runTopupScenario(
  history: TopupHistory,
  { accountNumber, accountId }: Payee,
  { msat, marketRate, credited, reversed }: PaidTopup,
): void {
  const at = history.getInstant();
  const id = `t${history.topups.size}`;
  const reference = `hash of ${id}`;
  const confirmations = history.topups.size % 2;
  const data = createIssuedInvoice({
    accountId,
    reference,
    confirmations,
    expiresAt: history.getInstant(EXPIRY_MS),
    at,
  });
  history.runTopupCommand(id, { type: 'IssueInvoice', data });
  if (msat === null) return;
  // The value of what exceeds the invoice depends on the market rate.
  const rate = marketRate || (msat > BigInt(data.units) ? data.rate.value : null);
  const market = rate ? { market: toMarketValue(msat, rate, at) } : {};
  const receivedAfterExpiry =
    marketRate && confirmations === 0 ? { receivedAt: new Date(Date.parse(data.expiresAt) + 1).toISOString() } : {};
  const payment = createFullPayment(data, { units: msat, ...market, ...receivedAfterExpiry });
  history.runTopupCommand(id, { type: 'RecordPayment', data: { ...payment, confirmations: 0 } });
  history.runTopupCommand(id, { type: 'RecordPayment', data: payment });
  const received = history.events.at(-1);
  if (!credited || received?.type !== 'PaymentReceived') return;
  const booked = { amount: BigInt(received.data.amount) as PicoUsd, bonus: BigInt(received.data.bonus) as PicoUsd };
  history.runAccountCommand(accountNumber, {
    type: 'AddCredit',
    data: { creditId: toPaymentKey(payment.payment), method: data.method, ...booked, at },
  });
  history.runTopupCommand(id, { type: 'MarkCredited', data: { payment: payment.payment, at } });
  if (reversed) reversePayment(history, id, payment);
}

/** Returns a rate in USD per bitcoin, and the value of an amount in millisatoshis at this rate. */
function toMarketValue(msat: bigint, value: string, at: string) {
  return { rate: { value, source: 'kraken', at }, amount: ((msat * money.parseUsd(value)) / 10n ** 11n) as PicoUsd };
}

function reversePayment(history: TopupHistory, id: string, reportedPayment: ReportedPayment): void {
  const { payment, at, units } = reportedPayment;
  const reversalId = `reversal of ${id}`;
  const reversals = [{ id: reversalId, units: -(units + 1n) / 2n, why: 'refunded' }];
  const fees = [{ id: 'liquidity', units: units / 10n, why: 'a channel was opened' }];
  history.runTopupCommand(id, { type: 'RecordPayment', data: { ...reportedPayment, fees, reversals } });
  const event = history.events.at(-1);
  if (event?.type !== 'PaymentReversed') return;
  const { method, why } = event.data;
  const booked = { amount: BigInt(event.data.amount) as PicoUsd, bonus: BigInt(event.data.bonus) as PicoUsd };
  const data = { reversalId, creditId: toPaymentKey(payment), method, ...booked, why, at };
  history.runAccountCommand(Number(event.data.accountId.slice(-1)), { type: 'ReverseCredit', data });
}
