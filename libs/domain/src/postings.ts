/**
 * Double entry: what a fact books, as lines whose amounts sum to zero. A positive amount is a debit, a negative one a
 * credit. The journal, the trial balance and every balance follow from these lines and from nothing else.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { Charge, ChargeItem } from './charge.ts';
import { CHALLENGE, type DomainEvent } from './events.ts';

/**
 * The chart of accounts. `customer` is what accounts have, `challenge` what payments for one request have; `rounding` is what
 * such a payment came to above its price, since it is made in whole satoshis. `rates` is what exchange rates have won or
 * lost between an invoice and its payment, `fees` is what back ends keep. Provider, creditor, method and surface are names
 * such as `openai`, `openrouter`, `btc-lightning`, `chat`.
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
  | `rates:${string}`
  | `fees:${string}`
  | `cost:${string}`
  | `payable:${string}`
  | 'overrun';

export interface Posting {
  readonly account: LedgerAccount;
  /** The id of the account or the challenge whose money it is; null for the house's own. */
  readonly customer: string | null;
  readonly amount: PicoUsd;
}

const NO_POSTINGS: readonly Posting[] = [];

/** The lines that a fact of a stream books; lines of zero are left out. */
export function toPostings(stream: string, event: DomainEvent): readonly Posting[] {
  const holder = getHolderAccounts(stream);
  const { customer } = holder;
  switch (event.type) {
    case 'CreditAdded':
    case 'CreditReversed': {
      // A reversal is booked as its credit was, with amounts below zero.
      const { method, amount, bonus } = event.data;
      const paid = money.parseJsonAmount(amount);
      const bonusAmount = money.parseJsonAmount(bonus);
      return omitZeroPostings(
        { account: `clearing:${method}`, customer: null, amount: paid },
        { account: `bonus:${method}`, customer: null, amount: bonusAmount },
        { account: holder.available, customer, amount: money.negate(money.add(paid, bonusAmount)) },
      );
    }
    case 'PaymentReceived': {
      const { method, amount, market } = event.data;
      return market ? toRatePostings(method, market.amount, amount) : NO_POSTINGS;
    }
    case 'PaymentReversed': {
      const { method, amount, market } = event.data;
      return market ? toRatePostings(method, market, amount) : NO_POSTINGS;
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
    default:
      return NO_POSTINGS;
  }
}

/** Whose money a stream's facts are about, and the ledger accounts it is in. */
function getHolderAccounts(stream: string) {
  const [category = ''] = stream.split('-', 1);
  const kind = category === CHALLENGE ? 'challenge' : 'customer';
  return { customer: stream.slice(category.length + 1), available: `${kind}:available`, held: `${kind}:held` } as const;
}

/**
 * Revenue at the full price, by the surface that was asked and by each service beside it; what the customer does not pay
 * of it is an overrun. The cost is the provider's, and is owed to its creditor.
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

/** The account was credited what was asked for; what came is worth what the market says. The difference is the house's. */
function toRatePostings(method: string, market: string, credited: string): readonly Posting[] {
  const amount = money.subtract(money.parseJsonAmount(market), money.parseJsonAmount(credited));
  return omitZeroPostings(
    { account: `clearing:${method}`, customer: null, amount },
    { account: `rates:${method}`, customer: null, amount: money.negate(amount) },
  );
}

/** From what is available to what is held, or back: both are debts of the house, so the debit lessens `from`. */
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

/** @throws Error when the lines of a fact do not sum to zero: a bug, never an input's fault */
export function assertBalanced(entry: readonly Posting[]): void {
  const total = money.sum(entry.map(({ amount }) => amount));
  if (total !== 0n) throw new Error(`unbalanced entry: its lines sum to ${total} pico-USD`);
}
