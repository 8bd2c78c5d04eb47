import { accountIdsOf, openStreams, Secrets } from '#application';
import { ACCOUNT } from '#domain';
import { type Foundation, readMasterKeys, StartError } from '#infra';
import { formatUsd, NO_SNAPSHOTS, streamName } from '#kernel';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Prints the id of an account, and what the house has borne for it lately, where that is anything. */
export async function account(foundation: Foundation, named: string, print: (line: string) => void): Promise<void> {
  const id = await accountNamed(foundation, named);
  if (id === undefined) throw new StartError('There is no account of this credit_id.');
  print(id);
  const { accounts } = openStreams(foundation.store, NO_SNAPSHOTS, foundation.runtime);
  const { losses } = await accounts.read(id);
  if (!losses) return;
  const { since, borne, charged } = losses;
  print(`${formatUsd(borne)} USD were borne for it in the hour from ${since}, and ${formatUsd(charged)} USD charged`);
}

/**
 * The id that the books know an account by. It needs the master key: nothing that is stored says which `credit_id` it has.
 * @param named its `credit_id`, or the id itself
 */
export async function accountNamed({ settings, store }: Foundation, named: string): Promise<string | undefined> {
  if (!UUID.test(named)) return undefined;
  const name = named.toLowerCase();
  const [masterKey, ...others] = await readMasterKeys(settings);
  for (const id of [name, ...accountIdsOf(name, new Secrets(masterKey as Buffer, others))])
    if (await store.head(streamName(ACCOUNT, id))) return id;
  return undefined;
}
