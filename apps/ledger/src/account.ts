import { createStreams, Secrets, toAccountIds, toMasterKeyId } from '#application';
import { ACCOUNT } from '#domain';
import { assertKeyRingComplete, type Foundation, findMasterKeys, StartError } from '#foundation';
import { formatUsd, NO_SNAPSHOTS, toStreamName } from '#kernel';
import { withPool } from './keys.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Prints the id of an account, and what the house has borne for it lately, where that is anything. */
export async function printAccount(
  foundation: Foundation,
  idOrCreditId: string,
  print: (line: string) => void,
): Promise<void> {
  const id = await resolveAccountId(foundation, idOrCreditId);
  if (id === undefined) throw new StartError('There is no account of this credit_id.');
  print(id);
  const { accounts } = createStreams(foundation.store, NO_SNAPSHOTS, foundation.runtime);
  const { losses } = await accounts.read(id);
  if (!losses) return;
  const { since, borne, charged } = losses;
  print(`${formatUsd(borne)} USD were borne for it in the hour from ${since}, and ${formatUsd(charged)} USD charged`);
}

/**
 * The id that the books know an account by. It needs the master keys: nothing that is stored says which `credit_id` it has.
 * @param idOrCreditId its `credit_id`, or the id itself
 * @throws StartError where there is none, and a key is missing by which there might be
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
