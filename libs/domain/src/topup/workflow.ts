/** The next steps of a top-up: checks for payments, and the credit of received payments to the account. */
import { money, type QueryStep, type SendStep, type Workflow, type WorkflowPlan, ZERO_USD } from '#kernel';
import type { AccountCommand } from '../account/commands.ts';
import { TOPUP } from '../events.ts';
import type { Instant } from '../value-types.ts';
import type { Coin } from './coins.ts';
import { type TopupCommand, topupDecider } from './decide.ts';
import type { ExcessCredited, InvoiceIssued, PaymentReceived, PaymentReversed, TopupEvent } from './events.ts';
import { type TopupState, toPaymentKey } from './state.ts';

/**
 * How often payments are checked, depending on the time since the expiry. A notification of the payment backend makes a
 * check happen earlier.
 */
const OPEN_POLL_INTERVAL_MS = 2_000;
const RECENT_POLL_INTERVAL_MS = 60_000;
const OLD_POLL_INTERVAL_MS = 3_600_000;
const RARE_POLL_INTERVAL_MS = 86_400_000;
const RECENT_MS = 3_600_000;
const OLD_MS = 7 * 86_400_000;
/**
 * How long payments are checked after the expiry, because a payment in flight can settle late. An address can be paid
 * to at any time, and a card payment can be disputed for months. A notification triggers a check even after this
 * period.
 */
const POLLING_PERIOD_MS = { bolt11: OLD_MS, address: 180 * 86_400_000, page: 180 * 86_400_000 } as const;

/** Checks which payments the payment backend has for a top-up. */
export interface PaymentsQuery {
  readonly method: string;
  readonly coin: Coin;
  readonly backend: string;
  readonly reference: string;
  /** The number of confirmations after which a payment is final. */
  readonly confirmations: number;
  /** The payment backend's ids of payments that are not final yet. */
  readonly pending: readonly string[];
  /** The payment backend's ids of received payments. */
  readonly received: readonly string[];
}

export type TopupSendCommand =
  | {
      readonly target: 'account';
      readonly id: string;
      readonly command: Extract<AccountCommand, { readonly type: 'AddCredit' | 'ReverseCredit' }>;
    }
  | { readonly target: 'topup'; readonly command: Extract<TopupCommand, { readonly type: 'MarkCredited' }> };

export type TopupStep = QueryStep<PaymentsQuery> | SendStep<TopupSendCommand>;

function plan(topup: TopupState, now: Instant): WorkflowPlan<TopupStep> {
  const { invoice } = topup;
  if (!invoice) return { steps: [] };
  const steps: TopupStep[] = listSendCommands(topup, now).map((command) => ({ step: 'send', command }));
  if (!canBePaid(topup, invoice)) return { steps };
  const { method, coin, backend, reference, confirmations } = invoice;
  const pending = [...topup.pendingPayments.keys()].map((key) => key.slice(toPaymentKey({ backend, id: '' }).length));
  const received = [...topup.payments.values()].map(({ data }) => data.payment.id);
  steps.push({ step: 'query', query: { method, coin, backend, reference, confirmations, pending, received } });
  const wait = getPollDelayMs(topup, invoice, now);
  return wait === undefined ? { steps } : { steps, dueAt: new Date(Date.parse(now) + wait).toISOString() };
}

/** Whether another payment is possible: a Lightning invoice can be paid only once, other destinations repeatedly. */
function canBePaid({ payments }: TopupState, { destination }: InvoiceIssued['data']): boolean {
  return destination.kind !== 'bolt11' || payments.size === 0;
}

/**
 * Returns the time until the next check; undefined if there is none. Before the expiry, a paid top-up without pending
 * payments is checked less often: it can only be paid again or reversed, which is not urgent.
 */
function getPollDelayMs(
  { payments, pendingPayments }: TopupState,
  { expiresAt, destination }: InvoiceIssued['data'],
  now: Instant,
): number | undefined {
  const expiredMs = Date.parse(now) - Date.parse(expiresAt);
  if (expiredMs < 0)
    return payments.size > 0 && pendingPayments.size === 0 ? RECENT_POLL_INTERVAL_MS : OPEN_POLL_INTERVAL_MS;
  if (expiredMs >= POLLING_PERIOD_MS[destination.kind]) return undefined;
  if (expiredMs < RECENT_MS) return RECENT_POLL_INTERVAL_MS;
  return expiredMs < OLD_MS ? OLD_POLL_INTERVAL_MS : RARE_POLL_INTERVAL_MS;
}

/**
 * A credited payment is marked in the top-up. A credited excess and a reversal are not marked: sending them again has
 * no effect.
 */
function listSendCommands(topup: TopupState, at: Instant): readonly TopupSendCommand[] {
  const payments = [...topup.payments.values()];
  const received = payments.filter(({ isCredited }) => !isCredited);
  return [
    ...received.flatMap(({ data }): readonly TopupSendCommand[] => [
      createCreditCommand(data, at),
      { target: 'topup', command: { type: 'MarkCredited', data: { payment: data.payment, at } } },
    ]),
    ...payments.flatMap(({ creditedExcess }) => (creditedExcess ? [createExcessCommand(creditedExcess, at)] : [])),
    ...[...topup.reversals.values()].map((reversed) => createReversalCommand(reversed, at)),
  ];
}

function createCreditCommand(
  { accountId, method, payment, amount, bonus }: PaymentReceived['data'],
  at: Instant,
): TopupSendCommand {
  return {
    target: 'account',
    id: accountId,
    command: {
      type: 'AddCredit',
      data: {
        creditId: toPaymentKey(payment),
        method,
        amount: money.parseJsonAmount(amount),
        bonus: money.parseJsonAmount(bonus),
        at,
      },
    },
  };
}

/** The excess has a credit of its own, because a person decides about it after the rest was credited. */
function createExcessCommand(
  { accountId, method, payment, amount }: ExcessCredited['data'],
  at: Instant,
): TopupSendCommand {
  const creditId = `excess:${toPaymentKey(payment)}`;
  const data = { creditId, method, amount: money.parseJsonAmount(amount), bonus: ZERO_USD, at };
  return { target: 'account', id: accountId, command: { type: 'AddCredit', data } };
}

/** A reversal is sent even if the balance becomes negative. */
function createReversalCommand(reversed: PaymentReversed['data'], at: Instant): TopupSendCommand {
  const { accountId, payment, method, why } = reversed;
  const reversalId = toPaymentKey({ backend: payment.backend, id: reversed.reversalId });
  const data = {
    reversalId,
    creditId: toPaymentKey(payment),
    method,
    amount: money.parseJsonAmount(reversed.amount),
    bonus: money.parseJsonAmount(reversed.bonus),
    why,
    at,
  };
  return { target: 'account', id: accountId, command: { type: 'ReverseCredit', data } };
}

export const topupWorkflow: Workflow<TopupCommand, TopupState, TopupEvent, TopupStep> = {
  name: 'topups',
  category: TOPUP,
  // A new invoice is not paid yet. The first checks of thousands of new invoices would delay the checks of paid ones.
  lowPriorityEvents: new Set<TopupEvent['type']>(['InvoiceIssued']),
  decider: topupDecider,
  plan,
};
