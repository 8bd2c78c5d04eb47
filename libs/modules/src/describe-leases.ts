import type pg from 'pg';
import { type LeaseStatus, listUnheldLeases } from '#foundation';

/** Returns what health says about leases: those for which this process cannot work now, and those that nobody holds. */
export async function describeLeases(status: LeaseStatus, database: Pick<pg.Pool, 'query'>) {
  return { unable: status.unable, without_leader: await listUnheldLeases(database, status.names) };
}
