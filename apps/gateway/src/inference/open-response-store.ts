import type { Clock, ResponseStore } from '#application';
import { PostgresResponseStore } from '#connectors';
import type { Foundation } from '#foundation';
import type { ProcessRole } from '#modules';
import type { ContentDatabase } from '../edge/content.providers.ts';

/** Interval at which expired responses are deleted. They can be neither read nor continued, even before that. */
const SWEEP_INTERVAL_MS = 60 * 60_000;

/**
 * Opens the store of responses, and deletes expired responses now and at intervals. If another process is deleting
 * them, this one skips the deletion.
 */
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
