import path from 'node:path';
import { ProofCluster } from '../../cluster.ts';
import { waitUntil } from '../role-checks.ts';
import type { ArchivedServer } from './archived-server.ts';
import { check, checkService } from './checks.ts';
import { startChats } from './load.ts';

const CREDIT_USD = 100;
/** Complete responses before the files are copied, so that the copy includes some of the events. */
const CHATS_BEFORE_COPY = 50;
const DATABASE = 'timed';
/** The server records the time of a commit shortly before it writes the commit. */
const CLOCK_TOLERANCE = '10 ms';

/**
 * Copies the files of the server during a load of chats, which then continues. Restores the state of one second from
 * the copy and the archive: the restored database has what was committed before the second, and nothing after it.
 * Stops the server.
 */
export async function provePointInTime(name: string, server: ArchivedServer, directory: string): Promise<void> {
  const dataDir = path.join(directory, 'timed-installation');
  const copy = path.join(directory, 'copy');
  const url = await server.createDatabase(DATABASE);
  const cluster = await ProofCluster.start(dataDir, 1, { DATABASE_URL: url });
  const customer = await cluster.createCustomer(CREDIT_USD);
  const load = startChats(cluster, customer);
  let target = '';
  let method = '';
  try {
    await waitUntil(async () => load.completed >= CHATS_BEFORE_COPY);
    method = await server.copyFiles(copy);
    const [chosen] = await server.query(
      DATABASE,
      "select (date_trunc('second', clock_timestamp()) + interval '3 s')::text as time",
    );
    target = String(chosen?.time);
    const isPast = `select clock_timestamp() > '${target}'::timestamptz + interval '2 s' as past`;
    await waitUntil(async () => (await server.query(DATABASE, isPast))[0]?.past === true);
  } finally {
    await load.stop();
    await cluster.stop();
  }
  const committed = 'pg_xact_commit_timestamp(xmin)';
  const readIds = async (from: ArchivedServer, condition: string) =>
    (await from.query(DATABASE, `select id::text as id from es.events where ${condition}`)).map(({ id }) => id);
  const required = await readIds(server, `${committed} <= '${target}'::timestamptz - interval '${CLOCK_TOLERANCE}'`);
  const later = new Set(await readIds(server, `${committed} > '${target}'`));
  await server.stop();
  const restored = await server.startRestored(copy, target);
  try {
    const ids = new Set(await readIds(restored, 'true'));
    const missing = required.filter((id) => !ids.has(id)).length;
    const excess = [...ids].filter((id) => later.has(id)).length;
    check(
      missing === 0 && excess === 0 && required.length > 0 && later.size > 0,
      `${name}: ${method} and archive restore ${target}: ${ids.size} events, ${missing} missing, ${excess} of ${later.size} later ones`,
    );
    await checkService(`${name}, at that second`, { dataDir, DATABASE_URL: restored.getUrl(DATABASE) }, customer);
  } finally {
    await restored.stop();
  }
}
