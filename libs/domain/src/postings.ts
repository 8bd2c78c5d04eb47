/**
 * The double-entry postings of each event. The postings of an event sum to zero; a positive amount is a debit, a
 * negative one a credit. The journal, the trial balance and the balances of the read model are calculated from these
 * postings only.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { Charge, ChargeItem } from './charge.ts';
import { CHALLENGE, type DomainEvent } from './events.ts';

/**
 * The chart of accounts:
 * - `customer`: money of accounts. `challenge`: money of payments for one request.
 * - `rounding`: the excess of such a payment over its price, because satoshis cannot be divided.
 * - `excess`: what customers paid beyond the maximum of a payment method, until a person credits or refunds it.
 * - `rates`: gains and losses from exchange rates between an invoice and its payment.
 * - `fees`: what payment backends deduct.
 * - `funding`: what the operator has credited to accounts without a payment.
 *
 * A second part other than `available` and `held` is the name of a provider, creditor, payment method, request type or
 * additional service: `openai`, `openrouter`, `btc-lightning`, `chat_completion`, `web_search`. `revenue:late` belongs
 * to absorbed charges, `revenue:unclaimed` to forfeited payments.
 */
export type LedgerAccount =
  | 'customer:available'
  | 'customer:held'
  | 'challenge:available'
  | 'challenge:held'
  | `rounding:${string}`
  | `revenue:${string}`
  | `clearing:${string}`
  | `bonus:${string}`
  | `excess:${string}`
  | `rates:${string}`
  | `fees:${string}`
  | `funding:${string}`
  | `cost:${string}`
  | `payable:${string}`
  | 'overrun';

export interface Posting {
  readonly account: LedgerAccount;
  /** Id of the account or challenge that owns the money; null for the operator's own. */
  readonly customer: string | null;
  readonly amount: PicoUsd;
}

const NO_POSTINGS: readonly Posting[] = [];

/** Returns the postings of an event of the stream, without postings of zero. */
export function toPostings(stream: string, event: DomainEvent): readonly Posting[] {
  const holder = getHolderAccounts(stream);
  const { customer } = holder;
  switch (event.type) {
    case 'CreditAdded':
    case 'CreditReversed': {
      // A reversal has the same postings as a credit, with negative amounts if the customer loses them.
      const { method, amount, bonus } = event.data;
      const paid = money.parseJsonAmount(amount);
      const bonusAmount = money.parseJsonAmount(bonus);
      return omitZeroPostings(
        { account: `clearing:${method}`, customer: null, amount: paid },
        { account: `bonus:${method}`, customer: null, amount: bonusAmount },
        { account: holder.available, customer, amount: money.negate(money.add(paid, bonusAmount)) },
      );
    }
    case 'BalanceAdjusted': {
      const amount = money.parseJsonAmount(event.data.amount);
      return omitZeroPostings(
        { account: 'funding:operator', customer: null, amount },
        { account: holder.available, customer, amount: money.negate(amount) },
      );
    }
    case 'PaymentReceived':
      return toPaymentPostings(event.data, event.data.market?.amount);
    case 'PaymentReversed':
      return toPaymentPostings(event.data, event.data.market);
    case 'ExcessCredited': {
      const { method } = event.data;
      const amount = money.parseJsonAmount(event.data.amount);
      // The credit of the account posts the amount to `clearing` again.
      return omitZeroPostings(
        { account: `excess:${method}`, customer: null, amount },
        { account: `clearing:${method}`, customer: null, amount: money.negate(amount) },
      );
    }
    case 'PaymentFeeCharged': {
      const { method } = event.data;
      const amount = money.parseJsonAmount(event.data.amount);
      return omitZeroPostings(
        { account: `fees:${method}`, customer: null, amount },
        { account: `clearing:${method}`, customer: null, amount: money.negate(amount) },
      );
    }
    case 'ChallengePaid': {
      const { method, amount, price } = event.data;
      const [paid, owed] = [money.parseJsonAmount(amount), money.parseJsonAmount(price)];
      return omitZeroPostings(
        { account: `clearing:${method}`, customer: null, amount: paid },
        { account: holder.available, customer, amount: money.negate(owed) },
        { account: `rounding:${method}`, customer: null, amount: money.subtract(owed, paid) },
      );
    }
    case 'ChallengeOverpaid': {
      const { method } = event.data;
      const amount = money.parseJsonAmount(event.data.amount);
      return omitZeroPostings(
        { account: `clearing:${method}`, customer: null, amount },
        { account: holder.available, customer, amount: money.negate(amount) },
      );
    }
    case 'ChallengeForfeited': {
      const amount = money.parseJsonAmount(event.data.amount);
      return omitZeroPostings(
        { account: holder.available, customer, amount },
        { account: 'revenue:unclaimed', customer: null, amount: money.negate(amount) },
      );
    }
    case 'FundsHeld':
      return toTransferPostings(customer, holder.available, holder.held, money.parseJsonAmount(event.data.amount));
    case 'HoldExtended':
      return toTransferPostings(customer, holder.available, holder.held, money.parseJsonAmount(event.data.by));
    case 'HoldReleased':
    case 'HoldExpired':
      return toTransferPostings(customer, holder.held, holder.available, money.parseJsonAmount(event.data.held));
    case 'HoldSettled': {
      const held = money.parseJsonAmount(event.data.held);
      const charged = money.parseJsonAmount(event.data.charged);
      return omitZeroPostings(
        { account: holder.held, customer, amount: held },
        { account: holder.available, customer, amount: money.subtract(charged, held) },
        ...toRevenuePostings(event.data.charge, event.data.query.type, charged),
      );
    }
    case 'VideoCostClosed': {
      const { provider, creditor } = event.data;
      const cost = money.parseJsonAmount(event.data.cost);
      return omitZeroPostings(
        { account: `cost:${provider}`, customer: null, amount: cost },
        { account: `payable:${creditor}`, customer: null, amount: money.negate(cost) },
      );
    }
    case 'ChargeAbsorbed':
      return omitZeroPostings(...toRevenuePostings(event.data.charge, 'late', ZERO_USD));
    case 'ChargeReversed': {
      const charged = money.parseJsonAmount(event.data.charged);
      return omitZeroPostings(
        { account: 'overrun', customer: null, amount: charged },
        { account: holder.available, customer, amount: money.negate(charged) },
      );
    }
    default:
      return NO_POSTINGS;
  }
}

/** Returns the owner of the money in a stream, and the ledger accounts of that money. */
function getHolderAccounts(stream: string) {
  const [category = ''] = stream.split('-', 1);
  const kind = category === CHALLENGE ? 'challenge' : 'customer';
  return { customer: stream.slice(category.length + 1), available: `${kind}:available`, held: `${kind}:held` } as const;
}

/**
 * Posts revenue at the full price: that of additional services under their names, all other revenue under `surface`.
 * The part that the customer does not pay is an overrun. The cost is posted by provider and is owed to the creditor.
 */
function toRevenuePostings({ items, price }: Charge, surface: string, charged: PicoUsd): readonly Posting[] {
  return [
    ...items.flatMap((item) => toItemPostings(item, surface)),
    { account: 'overrun', customer: null, amount: money.subtract(money.parseJsonAmount(price), charged) },
  ];
}

function toItemPostings(
  { of, beside, provider, creditor, price, cost }: ChargeItem,
  surface: string,
): readonly Posting[] {
  const owed = money.parseJsonAmount(cost);
  return [
    { account: `revenue:${beside ? of : surface}`, customer: null, amount: money.negate(money.parseJsonAmount(price)) },
    { account: `cost:${provider}`, customer: null, amount: owed },
    { account: `payable:${creditor}`, customer: null, amount: money.negate(owed) },
  ];
}

/**
 * Posts what the credit of a payment does not post: its excess, and the difference between its market value and the sum
 * of credit and excess, which is the operator's gain or loss.
 */
function toPaymentPostings(
  { method, amount, excess = '0' }: { readonly method: string; readonly amount: string; readonly excess?: string },
  market: string | undefined,
): readonly Posting[] {
  const owed = money.parseJsonAmount(excess);
  const total = money.add(money.parseJsonAmount(amount), owed);
  const value = market === undefined ? total : money.parseJsonAmount(market);
  return omitZeroPostings(
    { account: `clearing:${method}`, customer: null, amount: money.subtract(value, money.parseJsonAmount(amount)) },
    { account: `excess:${method}`, customer: null, amount: money.negate(owed) },
    { account: `rates:${method}`, customer: null, amount: money.subtract(total, value) },
  );
}

/** Moves money between available and held. Both are liabilities of the operator, so the debit reduces `from`. */
function toTransferPostings(
  customer: string,
  from: LedgerAccount,
  to: LedgerAccount,
  amount: PicoUsd,
): readonly Posting[] {
  return omitZeroPostings({ account: from, customer, amount }, { account: to, customer, amount: money.negate(amount) });
}

function omitZeroPostings(...all: readonly Posting[]): readonly Posting[] {
  return all.filter(({ amount }) => amount !== 0n);
}

/** @throws Error if the postings of an event do not sum to zero, which is a bug and never caused by input */
export function assertBalanced(entry: readonly Posting[]): void {
  const total = money.sum(entry.map(({ amount }) => amount));
  if (total !== 0n) throw new Error(`unbalanced entry: its lines sum to ${total} pico-USD`);
}
