/** Where the facts of proofs and benchmarks are: in PostgreSQL, or on the server that `EVENTSTORE_URL` names. */
import { createHash } from 'node:crypto';
import { formatEventStoreDbNodes } from '#eventstore';

/**
 * The facts on a server outlast a run, and its secrets are under one master key from the first of them on: all runs have this
 * one, unless `MASTER_KEY` says another.
 */
const PROOF_MASTER_KEY = createHash('sha256').update('countinghouse proofs').digest('hex');

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of roles that have their facts where `env` says. */
export function getStoreSettings({
  EVENTSTORE_URL,
  MASTER_KEY = PROOF_MASTER_KEY,
}: Environment): Record<string, string> {
  return EVENTSTORE_URL ? { EVENTSTORE_URL, MASTER_KEY } : {};
}

/** What is measured, for a heading; without credentials. */
export function formatStoreName({ EVENTSTORE_URL }: Environment): string {
  return EVENTSTORE_URL ? `EventStoreDB at ${formatEventStoreDbNodes(EVENTSTORE_URL)}` : 'PostgreSQL';
}
