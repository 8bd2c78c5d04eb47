/**
 * The double-entry ledger of the auditor. A positive amount is a debit, a negative one a credit. The table states for
 * each event what it means for the ledger:
 *
 * - Money that a payment backend received is a debit of `clearing`, money of customers is a credit of
 *   `customer:available`, and both change together only when a payment is credited.
 * - A hold moves money of the payer. A charge is income at the full price, of which the payer pays the charged part.
 */
import { type AuditedEvent, type ChargeData, getOrCreate, parseAmount, sumAmounts } from './event-data.ts';

type Line = readonly [account: string, amount: bigint];
type Booking = (event: AuditedEvent, payer: 'customer' | 'challenge') => readonly Line[];

/** Money of the payer moves from one of its two ledger accounts to the other. */
const move = (payer: string, from: string, to: string, amount: bigint): readonly Line[] => [
  [`${payer}:${from}`, amount],
  [`${payer}:${to}`, -amount],
];

const bookCost = (provider: string, creditor: string, cost: bigint): readonly Line[] => [
  [`cost:${provider}`, cost],
  [`payable:${creditor}`, -cost],
];

/** The income and cost of every item. The operator absorbs what the payer does not pay. */
const bookCharge = ({ items, price }: ChargeData, service: string, paid: bigint): readonly Line[] => [
  ...items.map((item): Line => [`revenue:${item.beside ? item.of : service}`, -parseAmount(item.price)]),
  ...items.flatMap((item) => bookCost(item.provider, item.creditor, parseAmount(item.cost))),
  ['overrun', parseAmount(price) - paid],
];

const bookCredit: Booking = ({ data: { method, amount, bonus } }, payer) => [
  [`clearing:${method}`, parseAmount(amount)],
  [`bonus:${method}`, parseAmount(bonus)],
  [`${payer}:available`, -parseAmount(amount) - parseAmount(bonus)],
];

/** What was received is worth `value`. The credit of the account posts `amount` of it, so it has no posting here. */
const bookPayment: Booking = ({ data }) => {
  const { method } = data;
  const [amount, excess] = [parseAmount(data.amount), parseAmount(data.excess ?? '0')];
  const value = calculateValue(data);
  return [
    [`clearing:${method}`, value],
    [`clearing:${method}`, -amount],
    [`excess:${method}`, -excess],
    [`rates:${method}`, amount + excess - value],
  ];
};

const endUncharged: Booking = ({ data }, payer) => move(payer, 'held', 'available', parseAmount(data.held));

const BOOKINGS: Readonly<Record<string, Booking>> = {
  CreditAdded: bookCredit,
  CreditReversed: bookCredit,
  BalanceAdjusted: ({ data }, payer) => [
    ['funding:operator', parseAmount(data.amount)],
    [`${payer}:available`, -parseAmount(data.amount)],
  ],
  PaymentReceived: bookPayment,
  PaymentReversed: bookPayment,
  ExcessCredited: ({ data: { method, amount } }) => [
    [`excess:${method}`, parseAmount(amount)],
    [`clearing:${method}`, -parseAmount(amount)],
  ],
  PaymentFeeCharged: ({ data: { method, amount } }) => [
    [`fees:${method}`, parseAmount(amount)],
    [`clearing:${method}`, -parseAmount(amount)],
  ],
  ChallengePaid: ({ data: { method, amount, price } }, payer) => [
    [`clearing:${method}`, parseAmount(amount)],
    [`${payer}:available`, -parseAmount(price)],
    [`rounding:${method}`, parseAmount(price) - parseAmount(amount)],
  ],
  ChallengeOverpaid: ({ data: { method, amount } }, payer) => [
    [`clearing:${method}`, parseAmount(amount)],
    [`${payer}:available`, -parseAmount(amount)],
  ],
  ChallengeForfeited: ({ data }, payer) => [
    [`${payer}:available`, parseAmount(data.amount)],
    ['revenue:unclaimed', -parseAmount(data.amount)],
  ],
  FundsHeld: ({ data }, payer) => move(payer, 'available', 'held', parseAmount(data.amount)),
  HoldExtended: ({ data }, payer) => move(payer, 'available', 'held', parseAmount(data.by)),
  HoldReleased: endUncharged,
  HoldExpired: endUncharged,
  HoldSettled: ({ data }, payer) => [
    ...move(payer, 'held', 'available', parseAmount(data.held) - parseAmount(data.charged)),
    [`${payer}:held`, parseAmount(data.charged)],
    ...bookCharge(data.charge, data.query.type, parseAmount(data.charged)),
  ],
  ChargeAbsorbed: ({ data }) => bookCharge(data.charge, 'late', 0n),
  ChargeReversed: ({ data }, payer) => [
    ['overrun', parseAmount(data.charged)],
    [`${payer}:available`, -parseAmount(data.charged)],
  ],
  VideoCostClosed: ({ data }) => bookCost(data.provider, data.creditor, parseAmount(data.cost)),
};

export interface Balance {
  available: bigint;
  held: bigint;
}

/** All balances in pico-USD. */
export class Ledger {
  readonly balances = new Map<string, bigint>();
  /** What the operator owes to each payer, by stream. */
  private readonly payers = new Map<string, Balance>();

  /** Posts an event. @returns the sum of its postings, which must be 0 */
  book(event: AuditedEvent): bigint {
    const payer = event.stream.startsWith('challenge-') ? 'challenge' : 'customer';
    const lines = BOOKINGS[event.type]?.(event, payer) ?? [];
    for (const [account, amount] of lines) {
      this.balances.set(account, (this.balances.get(account) ?? 0n) + amount);
      const part = account === `${payer}:available` ? 'available' : account === `${payer}:held` ? 'held' : undefined;
      if (part) getOrCreate(this.payers, event.stream, () => ({ available: 0n, held: 0n }))[part] -= amount;
    }
    return sumAmounts(lines.map(([, amount]) => amount));
  }

  getPayerBalance(stream: string): Readonly<Balance> {
    return this.payers.get(stream) ?? { available: 0n, held: 0n };
  }
}

/** Returns the market value of a payment, or of the reversed part of one; what was credited and owed if that is equal. */
export function calculateValue({ amount, excess, market }: AuditedEvent['data']): bigint {
  if (market === undefined) return parseAmount(amount) + parseAmount(excess ?? '0');
  return parseAmount(typeof market === 'string' ? market : market.amount);
}
