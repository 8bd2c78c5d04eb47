import { createStreams, Secrets, toAccountIds, toMasterKeyId } from '#application';
import { ACCOUNT } from '#domain';
import { assertKeyRingComplete, type Foundation, findMasterKeys, StartError } from '#foundation';
import { formatUsd, NO_SNAPSHOTS, toStreamName } from '#kernel';
import { withPool } from './keys.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Prints the internal id of an account, and the losses and charges of its last hour with absorbed losses. */
export async function printAccount(
  foundation: Foundation,
  idOrCreditId: string,
  print: (line: string) => void,
): Promise<void> {
  const id = await resolveAccountId(foundation, idOrCreditId);
  if (id === undefined) throw new StartError('No account has this credit_id.');
  print(id);
  const { accounts } = createStreams(foundation.store, NO_SNAPSHOTS, foundation.runtime);
  const { losses } = await accounts.read(id);
  if (!losses) return;
  const { since, borne, charged } = losses;
  print(`${formatUsd(borne)} USD were absorbed in the hour from ${since}, and ${formatUsd(charged)} USD were charged`);
}

/**
 * Returns the internal id of an account, as used in events and tables. A `credit_id` is not stored, so finding its
 * account requires the master keys.
 * @param idOrCreditId the `credit_id` or the internal id
 * @returns undefined if there is no such account
 * @throws StartError if no account is found, but a master key is missing under which the account may exist
 */
export async function resolveAccountId(foundation: Foundation, idOrCreditId: string): Promise<string | undefined> {
  if (!UUID.test(idOrCreditId)) return undefined;
  const { settings, store, databaseUrl } = foundation;
  const name = idOrCreditId.toLowerCase();
  const [masterKey, ...otherKeys] = await findMasterKeys(settings);
  const ids = masterKey ? toAccountIds(name, new Secrets(masterKey, otherKeys)) : [];
  for (const id of [name, ...ids]) if (await store.readHead(toStreamName(ACCOUNT, id))) return id;
  const keyIds = masterKey ? [masterKey, ...otherKeys].map(toMasterKeyId) : [];
  await withPool(databaseUrl, (pool) => assertKeyRingComplete(pool, keyIds));
  return undefined;
}
