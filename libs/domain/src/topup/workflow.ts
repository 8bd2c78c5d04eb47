/** What is to be done for a top-up: its payments are looked for, and what has come is credited to its account. */
import { money, type QueryStep, type SendStep, type Workflow, type WorkflowPlan } from '#kernel';
import type { AccountCommand } from '../account/commands.ts';
import { TOPUP } from '../events.ts';
import type { Instant } from '../value-types.ts';
import type { Coin } from './coins.ts';
import { type TopupCommand, type TopupState, toPaymentKey, topupDecider } from './decide.ts';
import type { Destination, InvoiceIssued, PaymentReceived, PaymentReversed, TopupEvent } from './events.ts';

/** How often payments are looked for, by how long ago the top-up expired. What a back end hints at is only a hint. */
const OPEN_POLL_INTERVAL_MS = 2_000;
const RECENT_POLL_INTERVAL_MS = 60_000;
const OLD_POLL_INTERVAL_MS = 3_600_000;
const RARE_POLL_INTERVAL_MS = 86_400_000;
const RECENT_MS = 3_600_000;
const OLD_MS = 7 * 86_400_000;
/**
 * They are looked for this long after the expiry: a payment that was under way may settle late. An address can be paid to
 * for ever, and a card's payment can be disputed for months. What a back end hints at later is looked at all the same.
 */
const POLLING_PERIOD_MS = { bolt11: OLD_MS, address: 180 * 86_400_000, page: 180 * 86_400_000 } as const;

/** Which payments have come for a top-up? */
export interface PaymentsQuery {
  readonly coin: Coin;
  readonly backend: string;
  readonly reference: string;
  readonly kind: Destination['kind'];
  readonly expiresAt: Instant;
  /** Back end's ids of payments that are on their way, and of those that have come. */
  readonly pending: readonly string[];
  readonly received: readonly string[];
}

/** A command for the account, or for the top-up itself. */
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
  const { coin, backend, reference, expiresAt, destination } = invoice;
  const pending = [...topup.pendingPayments.keys()].map((key) => key.slice(toPaymentKey({ backend, id: '' }).length));
  const received = [...topup.payments.values()].map(({ data }) => data.payment.id);
  steps.push({
    step: 'query',
    query: { coin, backend, reference, kind: destination.kind, expiresAt, pending, received },
  });
  const wait = getPollDelayMs(topup, invoice, now);
  return wait === undefined ? { steps } : { steps, dueAt: new Date(Date.parse(now) + wait).toISOString() };
}

/** A Lightning invoice is paid once, an address as often as it is paid to. */
function canBePaid({ payments }: TopupState, { destination }: InvoiceIssued['data']): boolean {
  return destination.kind !== 'bolt11' || payments.size === 0;
}

/** What was paid and is not on its way any more can only be paid again, or taken back: that has time. */
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

/** A credit is added, and then marked here. A reversal is not marked: sent again, it changes nothing. */
function listSendCommands(topup: TopupState, at: Instant): readonly TopupSendCommand[] {
  const received = [...topup.payments.values()].filter(({ isCredited }) => !isCredited);
  return [
    ...received.flatMap(({ data }): readonly TopupSendCommand[] => [
      createCreditCommand(data, at),
      { target: 'topup', command: { type: 'MarkCredited', data: { payment: data.payment, at } } },
    ]),
    ...[...topup.reversals.values()].map((reversed) => createReversalCommand(reversed, at)),
  ];
}

function createCreditCommand(
  { accountId, method, payment, amount, bonus }: PaymentReceived['data'],
  at: Instant,
): TopupSendCommand {
  const booked = { amount: money.parseJsonAmount(amount), bonus: money.parseJsonAmount(bonus) };
  return {
    target: 'account',
    id: accountId,
    command: { type: 'AddCredit', data: { creditId: toPaymentKey(payment), method, ...booked, at } },
  };
}

/** Also where the balance falls below zero. */
function createReversalCommand(reversed: PaymentReversed['data'], at: Instant): TopupSendCommand {
  const { accountId, payment, method, why } = reversed;
  const reversalId = toPaymentKey({ backend: payment.backend, id: reversed.reversalId });
  const booked = { amount: money.parseJsonAmount(reversed.amount), bonus: money.parseJsonAmount(reversed.bonus) };
  const data = { reversalId, creditId: toPaymentKey(payment), method, ...booked, why, at };
  return { target: 'account', id: accountId, command: { type: 'ReverseCredit', data } };
}

export const topupWorkflow: Workflow<TopupCommand, TopupState, TopupEvent, TopupStep> = {
  name: 'topups',
  category: TOPUP,
  // Nobody has paid yet. Of thousands at once, the first look at each would keep those waiting that are paid.
  lowPriorityEvents: new Set<TopupEvent['type']>(['InvoiceIssued']),
  decider: topupDecider,
  plan,
};
