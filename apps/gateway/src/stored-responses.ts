import type pg from 'pg';
import { type Clock, Conversations, type Secrets } from '#application';
import { PostgresStoredResponses } from '#connectors';
import type { Foundation } from '#infra';

/** How long an expired response may lie about at most; it is not found any more either way. */
const SWEEP_EVERY_MS = 60 * 60_000;

/** Opens the responses that requests can continue from. Every gateway sweeps: what one has deleted, another does not miss. */
export async function openConversations(
  { runtime }: Foundation,
  { pool, secrets, clock }: { readonly pool: pg.Pool; readonly secrets: Secrets; readonly clock: Clock },
  opened: AsyncDisposableStack,
): Promise<Conversations> {
  const conversations = new Conversations(new PostgresStoredResponses(pool), secrets, clock, runtime.alarm);
  const sweep = () =>
    conversations.forgetExpired().catch((error) => runtime.alarm('expired responses were not deleted', error));
  await sweep();
  const timer = setInterval(() => void sweep(), SWEEP_EVERY_MS).unref();
  opened.defer(() => clearInterval(timer));
  return conversations;
}
