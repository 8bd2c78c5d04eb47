/**
 * Which contracts the running processes follow. Every process has connections that stay open: those of its leases, and
 * of its presence. Their names in `pg_stat_activity`, which every user may read, end with the contract. Processes of
 * versions before 1.0.0 do not name one, and follow contract 0.
 */
import type pg from 'pg';
import { WRITE_CONTRACT } from '#eventstore';

/** Names a connection that stays open as long as its process runs. */
export function toProcessConnectionName(name: string): string {
  return `${name}/${WRITE_CONTRACT}`;
}

/** Returns the number of connections by contract. A process has one or more. */
export async function countConnectionsByContract(
  database: Pick<pg.Client, 'query'>,
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await database.query<{ contract: number; connections: number }>(
    `select coalesce(substring(application_name from '/(\\d+)$'), '0')::int as contract, count(*)::int as connections
       from pg_stat_activity
      where datname = current_database() and application_name ~ '^countinghouse-(lease-|[a-z]+-[0-9a-f]{8}(/|$))'
      group by 1 order by 1`,
  );
  return new Map(rows.map(({ contract, connections }) => [contract, connections]));
}
