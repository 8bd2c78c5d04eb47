import { accountIdsOf, Secrets } from '#application';
import { ACCOUNT } from '#domain';
import { type Foundation, readMasterKeys } from '#infra';
import { streamName } from '#kernel';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

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
