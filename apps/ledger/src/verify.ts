import pg from 'pg';
import { type DomainEvent, KNOWN_FACTS } from '#domain';
import type { Foundation } from '#infra';
import { type Recorded, START, UnknownFact, upcast } from '#kernel';
import { BOOKS_OPTIONS, projections } from '#projections';
import { Auditor } from './audit/auditor.ts';
import { type Comparison, comparisonOf } from './comparison.ts';

/** Differences that are printed; all are counted. */
const MAX_PRINTED = 100;

/**
 * Replays all facts and compares every read model, row by row, as of its own checkpoint, and audits the facts
 * themselves. Everything is read in one snapshot, so it can run beside the service.
 * @returns true when nothing differs
 */
export async function verify({ store, databaseUrl }: Foundation, print: (line: string) => void): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl, options: BOOKS_OPTIONS });
  client.on('error', () => {}); // the query in progress fails with it
  await client.connect();
  const differences: string[] = [];
  const report = (difference: string) => void differences.push(difference);
  try {
    await client.query('begin isolation level repeatable read read only');
    const positions = await checkpoints(client);
    const comparisons = projections.map((projection) => comparisonOf(projection, client, report));
    const auditor = new Auditor(report);
    let facts = 0;
    for await (const { events } of store.stored.history(START)) {
      for (const stored of events) {
        facts++;
        const fact = known(stored, report);
        if (!fact) continue;
        auditor.see(stored, fact);
        for (const comparison of comparisons) {
          if (fact.position > (positions.get(comparison.name) ?? START)) comparison.unseen++;
          else {
            const fetching = comparison.see(fact);
            if (fetching) await fetching;
          }
        }
      }
    }
    for (const comparison of comparisons) await comparison.finish();
    for (const line of summary(facts, auditor, comparisons, differences)) print(line);
    return differences.length === 0;
  } finally {
    await client.end();
  }
}

/** A fact as it is read today; undefined when this program cannot read it, which is a difference unless it may be skipped. */
function known(stored: Recorded, report: (difference: string) => void): Recorded<DomainEvent> | undefined {
  if (KNOWN_FACTS.skippable.has(stored.type)) return undefined;
  try {
    return upcast(stored, KNOWN_FACTS) as Recorded<DomainEvent>;
  } catch (error) {
    if (!(error instanceof UnknownFact)) throw error;
    report(error.message);
    return undefined;
  }
}

async function checkpoints(client: pg.Client): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await client.query<{ projection: string; position: string }>('select * from checkpoints');
  return new Map(rows.map(({ projection, position }) => [projection, BigInt(position)]));
}

function* summary(
  facts: number,
  auditor: Auditor,
  comparisons: readonly Comparison[],
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
