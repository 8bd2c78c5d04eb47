/** Everything that changed the balance of an account, apart from requests. */
import { ACCOUNT, type AccountEvent } from '#domain';
import type { Foundation } from '#foundation';
import { formatUsd, money, NO_STREAM, type PicoUsd, type StoredEvent, toStreamName } from '#kernel';
import { findAccount } from './find-account.ts';
import { defineTable } from './table.ts';

type Print = (line: string) => void;

/** Prints the credits, debits and reversals of an account with their reasons, and the sum of its charges. */
export async function printHistory(foundation: Foundation, account: string, print: Print): Promise<void> {
  const { id } = await findAccount(foundation, account);
  const { heading, formatRow } = defineTable(['time', 24], ['USD', -22], ['what', 0]);
  print(heading);
  let [funded, charged] = [0n, 0n];
  for await (const events of foundation.store.read(toStreamName(ACCOUNT, id), NO_STREAM)) {
    for (const event of events as unknown as readonly (StoredEvent & AccountEvent)[]) {
      const entry = toEntry(event);
      if (entry) {
        funded += entry.amount;
        print(formatRow(event.recordedAt, formatUsd(entry.amount), entry.text));
      }
      if (event.type === 'HoldSettled') charged += money.parseJsonAmount(event.data.charged);
      if (event.type === 'ChargeReversed') charged -= money.parseJsonAmount(event.data.charged);
    }
  }
  print(formatRow('', formatUsd(funded as PicoUsd), 'in all'));
  print(formatRow('', formatUsd(-charged as PicoUsd), 'charged for requests'));
  print(formatRow('', formatUsd((funded - charged) as PicoUsd), 'balance, with what is held'));
}

function toEntry(event: AccountEvent): { readonly amount: PicoUsd; readonly text: string } | undefined {
  switch (event.type) {
    case 'CreditAdded':
    case 'CreditReversed': {
      const { creditId, method, amount, bonus } = event.data;
      const [paid, extra] = [money.parseJsonAmount(amount), money.parseJsonAmount(bonus)];
      const bonusText = extra === 0n ? '' : `, ${formatUsd(extra)} of it bonus`;
      const reason = event.type === 'CreditReversed' ? `reversed: ${event.data.why}` : 'paid';
      return { amount: money.add(paid, extra), text: `${method} ${creditId} ${reason}${bonusText}` };
    }
    case 'BalanceAdjusted': {
      const { adjustmentId, amount, reason, actor, reverses } = event.data;
      const reversed = reverses === undefined ? '' : ` reverses ${reverses}`;
      const author = actor.isVerified ? actor.name : `${actor.name} (unverified)`;
      return {
        amount: money.parseJsonAmount(amount),
        text: `operator ${adjustmentId}${reversed}: ${reason}, by ${author}`,
      };
    }
    default:
      return undefined;
  }
}
