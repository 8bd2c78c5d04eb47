import type { Clock, ResponseStore } from '#application';
import { PostgresResponseStore } from '#connectors';
import type { Foundation } from '#foundation';
import type { ProcessRole } from '#modules';
import type { ContentDatabase } from '../edge/content.providers.ts';

/** How long an expired response may stay in the database; it is not found any more either way. */
const SWEEP_INTERVAL_MS = 60 * 60_000;

/** Opens the responses that requests can continue from. Every gateway deletes expired ones; doing so twice is harmless. */
export async function openResponseStore(
  role: ProcessRole,
  { runtime }: Foundation,
  { pool }: ContentDatabase,
  clock: Clock,
): Promise<ResponseStore> {
  const store = new PostgresResponseStore(pool);
  const sweep = () =>
    store.removeExpired(clock.now()).catch((error) => runtime.reportError('expired responses were not deleted', error));
  await sweep();
  const timer = setInterval(() => void sweep(), SWEEP_INTERVAL_MS).unref();
  await role.closeOnExit({ close: () => clearInterval(timer) });
  return store;
}
