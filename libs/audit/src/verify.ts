import type pg from 'pg';
import { type DomainEvent, EVENT_SCHEMA } from '#domain';
import { createReplayReader, type Foundation, type StartProgress } from '#foundation';
import { isKnownEvent, START_POSITION, type StoredEvent, upcast } from '#kernel';
import { connectClient, openPool } from '#postgres';
import {
  findIncorrectQueryCounts,
  type IncorrectQueryCount,
  listBlockedProjections,
  listSkippedEvents,
  ProjectionProgress,
  projections,
  READ_MODEL_CONNECTION_OPTIONS,
  type SkippedEvent,
} from '#projections';
import { Auditor } from './auditor.ts';
import { createComparison, type ReadModelComparison } from './comparison.ts';
import { RepeatedPayments } from './repeated-payments.ts';

/** Maximum number of printed differences. Differences beyond it are only counted. */
const MAX_PRINTED_DIFFERENCES = 100;
/** How long a running projector may take to apply the events that were read for the comparison. */
const CATCH_UP_TIMEOUT_MS = 5_000;

/**
 * Replays all events, compares every row of every read model as of its checkpoint and every count of the query history,
 * and audits the events themselves.
 * The read models are read in one database snapshot, so that the service may run. Skipped events, and events that a
 * read model does not apply in time, are differences. Payments that were recorded more than once and contested
 * payments are named, and are no differences: the events are as they were recorded.
 * @param startProgress shows the progress of the replay; by default nothing shows it
 * @returns true if there are no differences
 */
export async function verify(
  foundation: Foundation,
  print: (line: string) => void,
  startProgress?: StartProgress,
): Promise<boolean> {
  const { store, databaseUrl } = foundation;
  const reader = createReplayReader('verify', store.rawReader, foundation, startProgress);
  const noTimeouts = { queryTimeoutMs: null, idleTransactionTimeoutMs: null };
  const client = await connectClient({
    connectionString: databaseUrl,
    name: 'verify',
    ...noTimeouts,
    options: READ_MODEL_CONNECTION_OPTIONS,
  });
  const differences: string[] = [];
  const report = (difference: string) => void differences.push(difference);
  try {
    await client.query('begin isolation level repeatable read read only');
    const positions = await loadCheckpoints(client);
    const skipped = await listSkippedEvents(client);
    const isSkipped = createSkipFilter(skipped);
    const comparisons = projections.map((projection) => createComparison(projection, client, report));
    const auditor = new Auditor(report);
    const payments = new RepeatedPayments();
    let eventCount = 0;
    let last = START_POSITION;
    for await (const { events } of reader.readAll(START_POSITION)) {
      for (const stored of events) {
        eventCount++;
        last = stored.position;
        const event = upcastOrReport(stored, report);
        if (!event) continue;
        auditOrReport(auditor, stored, event, report);
        payments.book(event);
        for (const comparison of comparisons) {
          if (event.position > (positions.get(comparison.name) ?? START_POSITION)) comparison.unappliedCount++;
          else if (!isSkipped(comparison.name, event.position)) {
            const pendingComparison = comparison.handleEvent(event);
            if (pendingComparison) await pendingComparison;
          }
        }
      }
    }
    for (const comparison of comparisons) await comparison.finish();
    const counts = await findIncorrectQueryCounts(client);
    for (const count of counts.incorrect) report(formatIncorrectCount(count));
    for (const skippedEvent of skipped)
      if (skippedEvent.by !== null || isReadable(skippedEvent)) report(formatSkip(skippedEvent));
    for (const difference of await describeLaggingProjections(comparisons, last, databaseUrl)) report(difference);
    const audited = [...auditor.formatSummary(), ...payments.formatLines()];
    const compared = [...comparisons, { name: 'query_counts', comparedCount: counts.comparedCount, unappliedCount: 0 }];
    for (const line of formatSummary(eventCount, audited, compared, differences)) print(line);
    return differences.length === 0;
  } finally {
    await client.end();
  }
}

/**
 * Upcasts an event to its current version.
 * @returns undefined if this build cannot read it, which is reported as a difference unless its type may be skipped
 */
function upcastOrReport(
  stored: StoredEvent,
  report: (difference: string) => void,
): StoredEvent<DomainEvent> | undefined {
  if (EVENT_SCHEMA.skippable.has(stored.type)) return undefined;
  try {
    return upcast(stored, EVENT_SCHEMA) as StoredEvent<DomainEvent>;
  } catch (error) {
    report((error as Error).message);
    return undefined;
  }
}

/** Reports an event that the auditor cannot process, and continues with the other events. */
function auditOrReport(
  auditor: Auditor,
  stored: StoredEvent,
  event: StoredEvent<DomainEvent>,
  report: (difference: string) => void,
) {
  try {
    auditor.auditEvent(stored, event);
  } catch (error) {
    report(`the event at position ${event.position}, a ${event.type} of ${event.stream}, cannot be audited: ${error}`);
  }
}

type SkipFilter = (reader: string, position: bigint) => boolean;

function createSkipFilter(skipped: readonly SkippedEvent[]): SkipFilter {
  const positions = new Map<string, Set<bigint>>();
  for (const { reader, position } of skipped) positions.set(reader, (positions.get(reader) ?? new Set()).add(position));
  return (reader, position) => positions.get(reader)?.has(position) ?? false;
}

/**
 * Returns whether this build knows the type and version of a skipped event. An unknown one is reported when it is
 * replayed, so its automatic skip is not reported again.
 */
function isReadable({ type, version }: SkippedEvent): boolean {
  return isKnownEvent(type, version, EVENT_SCHEMA);
}

function formatSkip({ reader, position, type, stream, why, by, at }: SkippedEvent): string {
  const eventText = `the event at position ${position}, a ${type} of ${stream}`;
  return `${reader} has skipped ${eventText}: ${why} (${by ?? 'automatically, because the build at that time could not read it'}, ${at.toISOString()})`;
}

function formatIncorrectCount({ accountId, keyId, day, stored, actual }: IncorrectQueryCount): string {
  const owner = keyId === null ? `account ${accountId}` : `key ${keyId} of account ${accountId}`;
  return `query_counts has ${stored} records on ${day} for ${owner}, and queries has ${actual}`;
}

/** Gives a running projector time for the latest events, then describes the read models that still lag. */
async function describeLaggingProjections(
  comparisons: readonly ReadModelComparison[],
  last: bigint,
  databaseUrl: string,
): Promise<readonly string[]> {
  const lagging = comparisons.filter(({ unappliedCount }) => unappliedCount > 0);
  if (lagging.length === 0) return [];
  const pool = openPool({ connectionString: databaseUrl, name: 'verify', max: 1 });
  try {
    const progress = new ProjectionProgress(pool);
    const deadline = performance.now() + CATCH_UP_TIMEOUT_MS;
    const missing: ReadModelComparison[] = [];
    for (const comparison of lagging) {
      const remainingMs = Math.max(0, deadline - performance.now());
      if (!(await progress.waitUntilApplied([comparison.name], last, remainingMs))) missing.push(comparison);
    }
    const blockedByName = new Map((await listBlockedProjections(pool)).map((blocked) => [blocked.projection, blocked]));
    return missing.map(({ name, unappliedCount }) => {
      const blockedProjection = blockedByName.get(name);
      const blockedText = blockedProjection
        ? `; it is blocked by the event at position ${blockedProjection.position}: ${blockedProjection.reason}`
        : '';
      return `${name} has not applied ${unappliedCount} events${blockedText}`;
    });
  } finally {
    await pool.end();
  }
}

async function loadCheckpoints(client: pg.Client): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await client.query<{ projection: string; position: string }>('select * from checkpoints');
  return new Map(rows.map(({ projection, position }) => [projection, BigInt(position)]));
}

function* formatSummary(
  eventCount: number,
  audited: readonly string[],
  comparisons: readonly Pick<ReadModelComparison, 'name' | 'comparedCount' | 'unappliedCount'>[],
  differences: readonly string[],
): Generator<string> {
  yield `${eventCount} events replayed`;
  yield* audited;
  for (const { name, comparedCount, unappliedCount } of comparisons) {
    yield `${name}: ${comparedCount} rows compared${unappliedCount > 0 ? `, ${unappliedCount} events not applied` : ''}`;
  }
  for (const difference of differences.slice(0, MAX_PRINTED_DIFFERENCES)) yield `difference: ${difference}`;
  if (differences.length > MAX_PRINTED_DIFFERENCES)
    yield `and ${differences.length - MAX_PRINTED_DIFFERENCES} more differences`;
  yield `drift ${differences.length}`;
}
