import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { startEmbeddedPostgres } from '#foundation';
import { FakeEventStoreDb } from '../../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';
import { ProofCluster } from '../../cluster.ts';
import { getStoreSettings } from '../../stores.ts';
import { check, checkService, runMaintenance } from './checks.ts';
import { sendChat, startChats } from './load.ts';

const CREDIT_USD = 1;
const NAME = 'EventStoreDB (simulated)';

/**
 * Makes a backup of PostgreSQL and then copies the file of the simulated EventStoreDB, both under load. Restores the
 * copy first, and then the backup into an empty database.
 */
export async function proveEventStoreCopy(directory: string): Promise<void> {
  const [journal, journalCopy] = [path.join(directory, 'journal'), path.join(directory, 'journal-copy')];
  const [source, target] = [path.join(directory, 'source'), path.join(directory, 'target')];
  await mkdir(directory);
  const original = await FakeEventStoreDb.start({ journal });
  const store = getStoreSettings({ ...process.env, EVENTSTORE_URL: original.connectionString });
  const cluster = await ProofCluster.start(source, 1, store);
  const customer = await cluster.createCustomer(CREDIT_USD);
  try {
    const other = await cluster.createCustomer(CREDIT_USD);
    await sendChat(String(cluster.gateways[0]), customer.apiKey);
    const load = startChats(cluster, other);
    const created = await runMaintenance(
      'backup',
      { ...store, DATA_DIR: source },
      'create',
      path.join(directory, 'backup'),
    );
    await copyFile(journal, journalCopy);
    await load.stop();
    check(created.isSuccessful, `${NAME}: a backup of PostgreSQL and a copy of the events are made under load`);
  } finally {
    await cluster.stop();
    original.stop();
  }
  const restoredStore = await FakeEventStoreDb.start({ journal: journalCopy });
  const embedded = await startEmbeddedPostgres(target); // runs until the end, so that the commands do not stop it
  try {
    const settings = { ...store, EVENTSTORE_URL: restoredStore.connectionString };
    const env = { ...settings, DATA_DIR: target };
    const restored = await runMaintenance('backup', env, 'restore', path.join(directory, 'backup'));
    const isComplete = restored.isSuccessful && restored.lastLine === 'drift 0';
    check(isComplete, `${NAME}: the backup is restored with the copy of the events (${restored.lastLine})`);
    await checkService(`${NAME}, restored`, { dataDir: target, ...settings }, customer);
  } finally {
    await embedded.close();
    restoredStore.stop();
  }
}
