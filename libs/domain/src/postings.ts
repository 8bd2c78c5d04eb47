/**
 * Double entry: what a fact books, as lines whose amounts sum to zero. A positive amount is a debit, a negative one a
 * credit. The journal, the trial balance and every balance follow from these lines and from nothing else.
 */
import { money, type PicoUsd, ZERO } from '#kernel';
import type { Charge, DomainEvent } from './events.ts';

/** The chart of accounts. Provider, method and surface are names such as `openai`, `btc-lightning`, `chat`. */
export type LedgerAccount =
  | 'customer:available'
  | 'customer:held'
  | `revenue:${string}`
  | `clearing:${string}`
  | `bonus:${string}`
  | `cost:${string}`
  | `payable:${string}`
  | 'overrun';

export interface Posting {
  readonly account: LedgerAccount;
  /** Whose account, for the customer accounts; null for the house's own. */
  readonly customer: string | null;
  readonly amount: PicoUsd;
}

const NONE: readonly Posting[] = [];

/** The lines that a fact of `customer`'s account books; lines of zero are left out. */
export function postings(customer: string, event: DomainEvent): readonly Posting[] {
  switch (event.type) {
    case 'CreditAdded':
    case 'CreditReversed': {
      // A reversal is booked as its credit was, with amounts below zero.
      const { method, amount, bonus } = event.data;
      const paid = money.fromJson(amount);
      const given = money.fromJson(bonus);
      return lines(
        { account: `clearing:${method}`, customer: null, amount: paid },
        { account: `bonus:${method}`, customer: null, amount: given },
        { account: 'customer:available', customer, amount: money.negate(money.add(paid, given)) },
      );
    }
    case 'FundsHeld':
      return moved(customer, 'customer:available', 'customer:held', money.fromJson(event.data.amount));
    case 'HoldReleased':
    case 'HoldExpired':
      return moved(customer, 'customer:held', 'customer:available', money.fromJson(event.data.held));
    case 'HoldSettled': {
      const held = money.fromJson(event.data.held);
      const charged = money.fromJson(event.data.charged);
      return lines(
        { account: 'customer:held', customer, amount: held },
        { account: 'customer:available', customer, amount: money.subtract(charged, held) },
        ...earned(event.data.charge, event.data.query.type, charged),
      );
    }
    case 'ChargeAbsorbed':
      return lines(...earned(event.data.charge, 'late', ZERO));
    default:
      return NONE;
  }
}

/**
 * Revenue at the full price, by the surface and by each fee; what the customer does not pay of it is an overrun. The
 * cost is owed to the provider.
 */
function earned({ price, cost, provider, fees = [] }: Charge, surface: string, charged: PicoUsd): readonly Posting[] {
  const full = money.fromJson(price);
  const ofFees = (amount: 'price' | 'cost') => money.sum(fees.map((fee) => money.fromJson(fee[amount])));
  return [
    ...sold(
      surface,
      provider,
      money.subtract(full, ofFees('price')),
      money.subtract(money.fromJson(cost), ofFees('cost')),
    ),
    ...fees.flatMap((fee) => sold(fee.name, fee.provider, money.fromJson(fee.price), money.fromJson(fee.cost))),
    { account: 'overrun', customer: null, amount: money.subtract(full, charged) },
  ];
}

function sold(what: string, provider: string, price: PicoUsd, cost: PicoUsd): readonly Posting[] {
  return [
    { account: `revenue:${what}`, customer: null, amount: money.negate(price) },
    { account: `cost:${provider}`, customer: null, amount: cost },
    { account: `payable:${provider}`, customer: null, amount: money.negate(cost) },
  ];
}

/** From one customer account to the other: both are debts of the house, so the debit lessens `from`. */
function moved(customer: string, from: LedgerAccount, to: LedgerAccount, amount: PicoUsd): readonly Posting[] {
  return lines({ account: from, customer, amount }, { account: to, customer, amount: money.negate(amount) });
}

function lines(...all: readonly Posting[]): readonly Posting[] {
  return all.filter(({ amount }) => amount !== 0n);
}

/** @throws Error when the lines of a fact do not sum to zero: a bug, never an input's fault */
export function assertBalanced(entry: readonly Posting[]): void {
  const total = money.sum(entry.map(({ amount }) => amount));
  if (total !== 0n) throw new Error(`unbalanced entry: its lines sum to ${total} pico-USD`);
}
