import { createStreams } from '#application';
import type { Foundation } from '#foundation';
import { formatUsd, NO_SNAPSHOTS } from '#kernel';
import { findAccount } from './find-account.ts';

/** Prints the internal id of an account, and the losses and charges of its last hour with absorbed losses. */
export async function printAccount(
  foundation: Foundation,
  account: string,
  print: (line: string) => void,
): Promise<void> {
  const { id } = await findAccount(foundation, account);
  print(id);
  const { accounts } = createStreams(foundation.store, NO_SNAPSHOTS, foundation.runtime);
  const { losses } = await accounts.read(id);
  if (!losses) return;
  const { since, borne, charged } = losses;
  print(`${formatUsd(borne)} USD were absorbed in the hour from ${since}, and ${formatUsd(charged)} USD were charged`);
}
