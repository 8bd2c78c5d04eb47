import path from 'node:path';
import { ProofCluster } from '../../cluster.ts';
import type { ArchivedServer } from './archived-server.ts';
import { check, checkService, runMaintenance } from './checks.ts';
import { sendChat, startChats } from './load.ts';

const CREDIT_USD = 1;
const CHATS = 5;
const SERVICE_LOGIN = 'gateway';

/**
 * Restores a backup, which is made under load, into an empty database, with no rights but those of its owner. Then the
 * roles run with the rights of the service only.
 */
export async function proveOwnerRestore(name: string, server: ArchivedServer, directory: string): Promise<void> {
  const dataDir = path.join(directory, 'installation');
  const [source, target] = [await server.createDatabase('source'), await server.createDatabase('target')];
  const cluster = await ProofCluster.start(dataDir, 1, { DATABASE_URL: source });
  const backup = path.join(directory, 'backup');
  try {
    const [customer, other] = [await cluster.createCustomer(CREDIT_USD), await cluster.createCustomer(CREDIT_USD)];
    for (let i = 0; i < CHATS; i++) await sendChat(String(cluster.gateways[0]), customer.apiKey);
    const { balance } = await cluster.fetchBalance(customer);
    const load = startChats(cluster, other);
    const created = await runMaintenance('backup', { DATABASE_URL: source, DATA_DIR: dataDir }, 'create', backup);
    await load.stop();
    check(created.isSuccessful, `${name}: a backup is made under load`);
    const restored = await runMaintenance('backup', { DATABASE_URL: target, DATA_DIR: dataDir }, 'restore', backup);
    const isComplete = restored.isSuccessful && restored.lastLine === 'drift 0';
    check(isComplete, `${name}: the owner restores it into an empty database (${restored.lastLine})`);
    const service = await grantServiceLogin(name, server, 'target');
    await checkService(`${name}, restored`, { dataDir, DATABASE_URL: service }, customer, balance);
  } finally {
    await cluster.stop();
  }
}

/** Separates the rights of owner and service. @returns the URL of the database for a login with those of the service */
async function grantServiceLogin(name: string, server: ArchivedServer, database: string): Promise<string> {
  const settings = { DATABASE_ADMIN_URL: server.getUrl(database, 'postgres') };
  const granted = await runMaintenance('grant', settings);
  await server.query(database, `create role ${SERVICE_LOGIN} login in role countinghouse_service`);
  const checked = await runMaintenance('grant', settings, '--check');
  const hasRights = granted.isSuccessful && checked.isSuccessful;
  check(hasRights, `${name}: grant creates the roles, of which that of the service is used (${checked.lastLine})`);
  return server.getUrl(database, SERVICE_LOGIN);
}
