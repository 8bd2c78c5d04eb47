import { type Foundation, LeaseStatus, type Running, runWhileLeader } from '#foundation';
import { type EventBatch, type Lease, pump } from '#kernel';
import { openPool } from '#postgres';
import {
  createProjectionSink,
  listenForWakeups,
  type Projection,
  projections,
  READ_MODEL_CONNECTION_OPTIONS,
  rebuildIfOutdated,
} from '#projections';

/** The name of the lease that read models are written under. */
export const PROJECTOR = 'projector';

/** Starts the projector: one pump for each read model, in one process at a time; others stand by. */
export async function startProjector(
  { databaseUrl, store: { lenient: store, pollNow: hurry }, runtime }: Foundation,
  turns = new LeaseStatus(),
): Promise<Running> {
  const stop = new AbortController();
  const pool = openPool({
    connectionString: databaseUrl,
    name: 'projector',
    max: projections.length,
    options: READ_MODEL_CONNECTION_OPTIONS,
    onIdleError: (error) => runtime.reportError('an idle connection of the projector broke', error),
  });
  const heard = hurry && { connectionString: databaseUrl, onNotification: hurry, onProblem: runtime.reportError };
  const wanted = heard && listenForWakeups(heard);
  await wanted?.open();
  const follow = store.subscribe.bind(store);
  const project = (projection: Projection, { token, signal }: Lease) => {
    const sink = createProjectionSink(projection, pool, token);
    const checkpoint = async () => {
      await rebuildIfOutdated(projection, { store, databaseUrl, issueFencingToken: async () => token, signal });
      return sink.loadCheckpoint();
    };
    const apply = async (batch: EventBatch) => {
      const { size } = sink.skippedPositions;
      await sink.apply(batch);
      if (sink.skippedPositions.size > size)
        runtime.reportError(
          `${sink.name} has skipped facts, so what it shows of their accounts is incomplete`,
          new Error(`${sink.skippedPositions.size - size} facts up to position ${batch.position}`),
        );
    };
    return pump(follow, { name: sink.name, loadCheckpoint: checkpoint, apply }, signal, runtime);
  };
  const leading = runWhileLeader(
    { databaseUrl, name: PROJECTOR, signal: stop.signal, alarm: runtime.reportError, turns },
    (lease) => projections.map((each) => project(each, lease)),
  );
  const close = async () => {
    stop.abort();
    await leading;
    await wanted?.close();
    await pool.end();
  };
  return { where: {}, close };
}
