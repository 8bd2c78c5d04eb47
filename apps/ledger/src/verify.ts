import type pg from 'pg';
import { type DomainEvent, EVENT_SCHEMA } from '#domain';
import type { Foundation } from '#foundation';
import { isKnownEvent, START_POSITION, type StoredEvent, upcast } from '#kernel';
import { createClient, openPool } from '#postgres';
import {
  listBlockedProjections,
  listSkippedEvents,
  ProjectionProgress,
  projections,
  READ_MODEL_CONNECTION_OPTIONS,
  type SkippedEvent,
} from '#projections';
import { Auditor } from './audit/auditor.ts';
import { createComparison, type ReadModelComparison } from './comparison.ts';

/** Differences that are printed; all are counted. */
const MAX_PRINTED = 100;
/** How long a projector that runs may take for what was appended before the comparison. */
const CATCH_UP_MS = 5_000;

/**
 * Replays all facts and compares every read model, row by row, as of its own checkpoint, and audits the facts
 * themselves. Everything is read in one snapshot, so it can run beside the service. Facts that were skipped, and those that
 * a read model does not apply in time, are differences.
 * @returns true when nothing differs
 */
export async function verify({ store, databaseUrl }: Foundation, print: (line: string) => void): Promise<boolean> {
  const slowly = { queryTimeoutMs: null, idleTransactionTimeoutMs: null };
  const client = createClient({
    connectionString: databaseUrl,
    name: 'verify',
    ...slowly,
    options: READ_MODEL_CONNECTION_OPTIONS,
  });
  await client.connect();
  const differences: string[] = [];
  const report = (difference: string) => void differences.push(difference);
  try {
    await client.query('begin isolation level repeatable read read only');
    const positions = await checkpoints(client);
    const skipped = await listSkippedEvents(client);
    const isSkipped = skippedBy(skipped);
    const comparisons = projections.map((projection) => createComparison(projection, client, report));
    const auditor = new Auditor(report);
    let facts = 0;
    let last = START_POSITION;
    for await (const { events } of store.rawReader.readAll(START_POSITION)) {
      for (const stored of events) {
        facts++;
        last = stored.position;
        const fact = known(stored, report);
        if (!fact) continue;
        audited(auditor, stored, fact, report);
        for (const comparison of comparisons) {
          if (fact.position > (positions.get(comparison.name) ?? START_POSITION)) comparison.unseen++;
          else if (!isSkipped(comparison.name, fact.position)) {
            const fetching = comparison.see(fact);
            if (fetching) await fetching;
          }
        }
      }
    }
    for (const comparison of comparisons) await comparison.finish();
    for (const each of skipped) if (each.by !== null || isReadable(each)) report(printedSkip(each));
    for (const each of await notApplied(comparisons, last, databaseUrl)) report(each);
    for (const line of summary(facts, auditor, comparisons, differences)) print(line);
    return differences.length === 0;
  } finally {
    await client.end();
  }
}

/** A fact as it is read today; undefined when this program cannot read it, which is a difference unless it may be skipped. */
function known(stored: StoredEvent, report: (difference: string) => void): StoredEvent<DomainEvent> | undefined {
  if (EVENT_SCHEMA.skippable.has(stored.type)) return undefined;
  try {
    return upcast(stored, EVENT_SCHEMA) as StoredEvent<DomainEvent>;
  } catch (error) {
    report((error as Error).message);
    return undefined;
  }
}

/** A fact that makes no sense to the auditor must not keep others from it. */
function audited(
  auditor: Auditor,
  stored: StoredEvent,
  fact: StoredEvent<DomainEvent>,
  report: (difference: string) => void,
) {
  try {
    auditor.see(stored, fact);
  } catch (error) {
    report(`the fact at position ${fact.position}, a ${fact.type} of ${fact.stream}, cannot be audited: ${error}`);
  }
}

type IsSkipped = (reader: string, position: bigint) => boolean;

function skippedBy(skipped: readonly SkippedEvent[]): IsSkipped {
  const positions = new Map<string, Set<bigint>>();
  for (const { reader, position } of skipped) positions.set(reader, (positions.get(reader) ?? new Set()).add(position));
  return (reader, position) => positions.get(reader)?.has(position) ?? false;
}

/** One that is not is a difference by itself. */
function isReadable({ type, version }: SkippedEvent): boolean {
  return isKnownEvent(type, version, EVENT_SCHEMA);
}

function printedSkip({ reader, position, type, stream, why, by, at }: SkippedEvent): string {
  const what = `the fact at position ${position}, a ${type} of ${stream}`;
  return `${reader} has skipped ${what}: ${why} (${by ?? 'it was not known'}, ${at.toISOString()})`;
}

/** What read models lack that had every chance to apply it: a projector that runs needs moments for the newest facts. */
async function notApplied(
  comparisons: readonly ReadModelComparison[],
  last: bigint,
  databaseUrl: string,
): Promise<readonly string[]> {
  const late = comparisons.filter(({ unseen }) => unseen > 0);
  if (late.length === 0) return [];
  const pool = openPool({ connectionString: databaseUrl, name: 'verify', max: 1 });
  try {
    const progress = new ProjectionProgress(pool);
    const deadline = performance.now() + CATCH_UP_MS;
    const missing: ReadModelComparison[] = [];
    for (const each of late) {
      const left = Math.max(0, deadline - performance.now());
      if (!(await progress.waitUntilApplied([each.name], last, left))) missing.push(each);
    }
    const stopped = new Map((await listBlockedProjections(pool)).map((each) => [each.projection, each]));
    return missing.map(({ name, unseen }) => {
      const stop = stopped.get(name);
      const where = stop ? `; it stands before the fact at position ${stop.position}: ${stop.reason}` : '';
      return `${name} has not applied ${unseen} facts${where}`;
    });
  } finally {
    await pool.end();
  }
}

async function checkpoints(client: pg.Client): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await client.query<{ projection: string; position: string }>('select * from checkpoints');
  return new Map(rows.map(({ projection, position }) => [projection, BigInt(position)]));
}

function* summary(
  facts: number,
  auditor: Auditor,
  comparisons: readonly ReadModelComparison[],
  differences: readonly string[],
): Generator<string> {
  yield `${facts} facts replayed`;
  yield* auditor.summary();
  for (const { name, compared, unseen } of comparisons) {
    yield `${name}: ${compared} rows compared${unseen > 0 ? `, ${unseen} facts not applied yet` : ''}`;
  }
  for (const difference of differences.slice(0, MAX_PRINTED)) yield `difference: ${difference}`;
  if (differences.length > MAX_PRINTED) yield `and ${differences.length - MAX_PRINTED} more differences`;
  yield `drift ${differences.length}`;
}
