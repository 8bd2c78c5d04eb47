import type pg from 'pg';
import type { Clock, StoredResponses } from '#application';
import { PostgresStoredResponses, storedResponseMigrations } from '#connectors';
import { type Foundation, migrate } from '#infra';
import type { Role } from '#modules';

/** How long an expired response may stay in the database; it is not found any more either way. */
const SWEEP_EVERY_MS = 60 * 60_000;

/** Opens the responses that requests can continue from. Every gateway deletes expired ones; doing so twice is harmless. */
export async function openStoredResponses(
  role: Role,
  { databaseUrl, runtime }: Foundation,
  pool: pg.Pool,
  clock: Clock,
): Promise<StoredResponses> {
  await migrate(databaseUrl, storedResponseMigrations);
  const stored = new PostgresStoredResponses(pool);
  const sweep = () =>
    stored.removeExpired(clock.now()).catch((error) => runtime.alarm('expired responses were not deleted', error));
  await sweep();
  const timer = setInterval(() => void sweep(), SWEEP_EVERY_MS).unref();
  await role.keep({ close: () => clearInterval(timer) });
  return stored;
}
