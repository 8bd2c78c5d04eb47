import type pg from 'pg';
import { type Clock, Conversations, type Secrets } from '#application';
import { PostgresStoredResponses, storedResponseMigrations } from '#connectors';
import { type Foundation, migrate } from '#infra';
import type { Role } from '#modules';

/** How long an expired response may stay in the database; it is not found any more either way. */
const SWEEP_EVERY_MS = 60 * 60_000;

/** Opens the responses that requests can continue from. Every gateway deletes expired ones; doing so twice is harmless. */
export async function openConversations(
  role: Role,
  { databaseUrl, runtime }: Foundation,
  pool: pg.Pool,
  ...[secrets, clock]: [Secrets, Clock]
): Promise<Conversations> {
  await migrate(databaseUrl, storedResponseMigrations);
  const conversations = new Conversations(new PostgresStoredResponses(pool), secrets, clock, runtime.alarm);
  const sweep = () =>
    conversations.forgetExpired().catch((error) => runtime.alarm('expired responses were not deleted', error));
  await sweep();
  const timer = setInterval(() => void sweep(), SWEEP_EVERY_MS).unref();
  await role.keep({ close: () => clearInterval(timer) });
  return conversations;
}
