import { type MigrationPlan, type PlannedMigration, RELEASE } from '#foundation';

const MILLION = 1_000_000;

/**
 * Returns what the pending migrations of a database change, how long they lock tables, and whether processes may run
 * during them.
 */
export function formatPlan(database: string, { pending, minContract, connectionsByContract }: MigrationPlan): string {
  if (pending.length === 0) return `${database}: nothing to migrate for version ${RELEASE.version}\n`;
  const unsupported = [...connectionsByContract].filter(([contract]) => contract < minContract);
  const lines = pending.flatMap((migration) => [
    `  ${migration.id}: ${migration.changes ?? 'a change from before version 1.0.0'}`,
    ...formatLocks(migration).map((lock) => `    ${lock}`),
  ]);
  const running = [...connectionsByContract].map(([contract, count]) => `${count} of contract ${contract}`);
  return [
    `${database}: ${pending.length} migrations for version ${RELEASE.version}`,
    ...lines,
    `  connections of running processes: ${running.join(', ') || 'none'}`,
    unsupported.length > 0
      ? `  stop all: processes that follow a contract below ${minContract} do not work after these migrations`
      : '  rolling: processes may run while these migrations are applied, and be replaced one after the other',
    '',
  ].join('\n');
}

/** A migration that locks nothing else still waits for its own locks of the catalogue, which take milliseconds. */
function formatLocks({ locks = [], lockedRows, changes }: PlannedMigration): readonly string[] {
  if (changes === undefined) return ['it is not recorded which tables it locks'];
  if (locks.length === 0) return ['locks no table that processes use'];
  return locks.map(({ table, blocks, millisecondsPerMillionRows }, i) => {
    const rows = lockedRows[i] ?? 0;
    const duration = Math.ceil((millisecondsPerMillionRows * rows) / MILLION);
    return `blocks ${blocks} of ${table} for about ${Math.max(1, duration)} ms (about ${Math.round(rows)} rows)`;
  });
}
