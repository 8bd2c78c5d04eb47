/** The payments that a person has to decide about. */
import { createStreams, type Topups } from '#application';
import { ContestedPayments } from '#audit';
import { type DomainEvent, getStreamId, type PaymentId, toPaymentKey } from '#domain';
import { type Foundation, StartError } from '#foundation';
import {
  type EventReader,
  formatUsd,
  money,
  NO_SNAPSHOTS,
  type PicoUsd,
  START_POSITION,
  type StoredEvent,
} from '#kernel';
import { runAsOperator } from './run-as-operator.ts';

type Print = (line: string) => void;

/** A payment above the maximum of its method. */
interface ExcessivePayment {
  readonly topupId: string;
  readonly accountId: string;
  readonly method: string;
  readonly payment: string;
  readonly receivedAt: string;
  /** What is neither credited nor refunded. */
  owed: bigint;
}

/**
 * Lists the payments of which an excess over the maximum of the method is owed, and the contested payments, computed
 * from all events.
 */
export async function printPayments({ store }: { readonly store: EventReader }, print: Print): Promise<void> {
  const excesses = new Map<string, ExcessivePayment>();
  const contests = new ContestedPayments();
  for await (const { events } of store.readAll(START_POSITION))
    for (const event of events) {
      bookExcess(event as StoredEvent<DomainEvent>, excesses);
      contests.book(event as StoredEvent<DomainEvent>);
    }
  printExcesses(excesses, print);
  for (const line of contests.formatLines()) print(line);
}

function printExcesses(excesses: ReadonlyMap<string, ExcessivePayment>, print: Print): void {
  const open = [...excesses.values()].filter(({ owed }) => owed !== 0n);
  const total = money.sum(open.map(({ owed }) => owed as PicoUsd));
  print(`${open.length} payments exceed the maximum of their method: ${formatUsd(total)} USD are owed`);
  for (const { topupId, accountId, method, payment, receivedAt, owed } of open)
    print(`${receivedAt}  ${topupId} ${payment}  ${formatUsd(owed as PicoUsd)} USD of ${accountId}, ${method}`);
}

function bookExcess(event: StoredEvent<DomainEvent>, excesses: Map<string, ExcessivePayment>): void {
  switch (event.type) {
    case 'PaymentReceived': {
      const { accountId, method, payment, receivedAt, excess } = event.data;
      if (excess === undefined) return;
      const topupId = getStreamId(event);
      const received = { topupId, accountId, method, payment: toPaymentKey(payment), receivedAt, owed: BigInt(excess) };
      excesses.set(toExcessKey(topupId, payment), received);
      return;
    }
    case 'PaymentReversed':
      addToExcess(event, BigInt(event.data.excess ?? 0), excesses);
      return;
    case 'ExcessCredited':
      addToExcess(event, -BigInt(event.data.amount), excesses);
      return;
    default:
  }
}

function addToExcess(
  event: StoredEvent & { readonly data: { readonly payment: PaymentId } },
  amount: bigint,
  excesses: ReadonlyMap<string, ExcessivePayment>,
): void {
  const excess = excesses.get(toExcessKey(getStreamId(event), event.data.payment));
  if (excess) excess.owed += amount;
}

function toExcessKey(topupId: string, payment: PaymentId): string {
  return `${topupId} ${toPaymentKey(payment)}`;
}

/** Credits the excess of a payment to its account. @throws StartError if nothing of it is owed */
export async function creditExcess(
  foundation: Foundation,
  topupId: string,
  paymentKey: string,
  print: Print,
): Promise<void> {
  const data = { payment: parsePaymentKey(paymentKey), at: new Date().toISOString() };
  const { events } = await runAsOperator(openTopups(foundation), topupId, { type: 'CreditExcess', data });
  print(`The excess of ${paymentKey} ${events.length > 0 ? 'is being credited' : 'was credited before'}`);
}

/**
 * Records that the excess of a payment was sent back to the customer. The transfer itself is made by the operator.
 * @param why names the transfer
 * @throws StartError if nothing of it is owed
 */
export async function recordExcessRefund(
  foundation: Foundation,
  { topupId, paymentKey, why }: { readonly topupId: string; readonly paymentKey: string; readonly why: string },
  print: Print,
): Promise<void> {
  const data = { payment: parsePaymentKey(paymentKey), why, at: new Date().toISOString() };
  const { events } = await runAsOperator(openTopups(foundation), topupId, { type: 'RefundExcess', data });
  print(`The refund of the excess of ${paymentKey} ${events.length > 0 ? 'is recorded' : 'was recorded before'}`);
}

/**
 * Records that a person has dealt with a contested payment. @param why what was found
 * @throws StartError if nothing contests it
 */
export async function closeContests(
  { store, runtime }: Foundation,
  { paymentKey, why }: { readonly paymentKey: string; readonly why: string },
  print: Print,
): Promise<void> {
  const { paymentClaims } = createStreams(store, NO_SNAPSHOTS, runtime);
  const data = { why, at: new Date().toISOString() };
  const id = toPaymentKey(parsePaymentKey(paymentKey));
  const { events } = await runAsOperator(paymentClaims, id, { type: 'CloseContests', data });
  print(`${paymentKey} ${events.length > 0 ? 'is no longer listed' : 'was closed before'}`);
}

function openTopups({ store, runtime }: Foundation): Topups {
  return createStreams(store, NO_SNAPSHOTS, runtime).topups;
}

function parsePaymentKey(paymentKey: string): PaymentId {
  const [, backend, id] = /^([^/]+)\/(.+)$/.exec(paymentKey) ?? [];
  if (backend === undefined || id === undefined)
    throw new StartError('A payment is named by its payment backend and its id there, such as lnd/5b0e…');
  return { backend, id };
}
