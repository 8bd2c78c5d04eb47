/** The postings that the auditor expects for an event. */
import type { ChargeReading, EventReading } from './event-readings.ts';

/** Amounts by ledger account; a debit is positive. */
export type JournalEntry = ReadonlyMap<string, bigint>;

/** Returns the postings that an event requires. @param accountPrefix prefix of the ledger accounts of its payer */
export function toExpectedEntry(reading: EventReading, accountPrefix: 'customer' | 'challenge'): JournalEntry {
  const entry = new Map<string, bigint>();
  const book = (account: string, amount: bigint) => void entry.set(account, (entry.get(account) ?? 0n) + amount);
  switch (reading.kind) {
    case 'credit':
      book(`clearing:${reading.method}`, reading.paid);
      book(`bonus:${reading.method}`, reading.bonus);
      book(`${accountPrefix}:available`, -(reading.paid + reading.bonus));
      break;
    case 'adjustment':
      book('funding:operator', reading.amount);
      book(`${accountPrefix}:available`, -reading.amount);
      break;
    case 'topup':
      book(`clearing:${reading.method}`, reading.market - reading.credited);
      book(`excess:${reading.method}`, -reading.excess);
      book(`rates:${reading.method}`, reading.credited + reading.excess - reading.market);
      break;
    case 'excess':
      book(`excess:${reading.method}`, reading.amount);
      book(`clearing:${reading.method}`, -reading.amount);
      break;
    case 'fee':
      book(`fees:${reading.method}`, reading.amount);
      book(`clearing:${reading.method}`, -reading.amount);
      break;
    case 'hold':
      book(`${accountPrefix}:available`, reading.amount);
      book(`${accountPrefix}:held`, -reading.amount);
      break;
    case 'extension':
      book(`${accountPrefix}:available`, reading.by);
      book(`${accountPrefix}:held`, -reading.by);
      break;
    case 'end':
      book(`${accountPrefix}:held`, reading.held);
      book(`${accountPrefix}:available`, reading.charged - reading.held);
      if (reading.charge) bookCharge(book, reading.charge, reading.surface, reading.charged);
      break;
    case 'reversal':
      book('overrun', reading.charged);
      book(`${accountPrefix}:available`, -reading.charged);
      break;
    case 'absorbed':
      bookCharge(book, reading.charge, 'late', 0n);
      break;
    case 'cost':
      book(`cost:${reading.provider}`, reading.cost);
      book(`payable:${reading.creditor}`, -reading.cost);
      break;
    case 'payment':
      book(`clearing:${reading.method}`, reading.worth);
      book(`rounding:${reading.method}`, reading.owed - reading.worth);
      book(`${accountPrefix}:available`, -reading.owed);
      break;
    case 'forfeit':
      book(`${accountPrefix}:available`, reading.amount);
      book('revenue:unclaimed', -reading.amount);
      break;
    case 'kept':
    case 'job':
    case 'offer':
    case 'prices':
      break;
    default:
      reading satisfies never;
  }
  return entry;
}

function bookCharge(
  book: (account: string, amount: bigint) => void,
  { parts, price }: ChargeReading,
  surface: string,
  charged: bigint,
): void {
  for (const part of parts) {
    book(`revenue:${part.beside ? part.of : surface}`, -part.price);
    book(`cost:${part.provider}`, part.cost);
    book(`payable:${part.creditor}`, -part.cost);
  }
  book('overrun', price - charged);
}
