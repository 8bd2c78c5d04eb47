/** Selects the event store of proofs and benchmarks: PostgreSQL, or the server in `EVENTSTORE_URL`. */
import { createHash } from 'node:crypto';
import { formatEventStoreDbNodes } from '#eventstore';

/**
 * The master key of all runs with a server, unless `MASTER_KEY` is set. Events on a server outlast a run, and the
 * secrets in them are encrypted under one master key.
 */
const PROOF_MASTER_KEY = createHash('sha256').update('countinghouse proofs').digest('hex');

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the settings with which roles use the event store that `env` selects. */
export function getStoreSettings({
  EVENTSTORE_URL,
  MASTER_KEY = PROOF_MASTER_KEY,
}: Environment): Record<string, string> {
  return EVENTSTORE_URL ? { EVENTSTORE_URL, MASTER_KEY } : {};
}

/** Names the event store for the heading of a report, without credentials. */
export function formatStoreName({ EVENTSTORE_URL }: Environment): string {
  return EVENTSTORE_URL ? `EventStoreDB at ${formatEventStoreDbNodes(EVENTSTORE_URL)}` : 'PostgreSQL';
}
