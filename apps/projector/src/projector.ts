import { type Foundation, LeaseStatus, type RunningProcess, runWhileLeader } from '#foundation';
import { type EventBatch, type Lease, pump } from '#kernel';
import { openPool } from '#postgres';
import {
  CheckpointWriter,
  createProjectionSink,
  listenForWakeups,
  PROJECTOR_LEASE,
  type Projection,
  ProjectionProgress,
  projections,
  READ_MODEL_CONNECTION_OPTIONS,
  rebuildIfOutdated,
} from '#projections';

/** Starts the projector. The process that holds the lease runs one pump per read model; others stand by. */
export async function startProjector(
  { databaseUrl, store: { lenient: store, pollNow }, runtime }: Foundation,
  leaseStatus = new LeaseStatus(),
): Promise<RunningProcess> {
  const stopController = new AbortController();
  const pool = openPool({
    connectionString: databaseUrl,
    name: 'projector',
    max: projections.length + 1, // one for the probe, which must not wait for slow batches
    options: READ_MODEL_CONNECTION_OPTIONS,
    onIdleError: (error) => runtime.reportError('an idle connection of the projector failed', error),
  });
  const wakeupOptions = pollNow && {
    connectionString: databaseUrl,
    onNotification: pollNow,
    onProblem: runtime.reportError,
  };
  const wakeups = wakeupOptions && listenForWakeups(wakeupOptions);
  await wakeups?.open();
  const checkpoints = new CheckpointWriter(pool);
  const subscribe = store.subscribe.bind(store);
  const runProjection = (projection: Projection, { token, signal }: Lease) => {
    const sink = createProjectionSink(projection, pool, token, checkpoints);
    const checkpoint = async () => {
      await rebuildIfOutdated(projection, pool, { store, databaseUrl, issueFencingToken: async () => token, signal });
      return sink.loadCheckpoint();
    };
    const apply = async (batch: EventBatch) => {
      const { size: skippedBefore } = sink.skippedPositions;
      await sink.apply(batch);
      if (sink.skippedPositions.size > skippedBefore)
        runtime.reportError(
          `${sink.name} skipped events, so the rows that depend on these events are incomplete`,
          new Error(`${sink.skippedPositions.size - skippedBefore} events up to position ${batch.position}`),
        );
    };
    return pump(subscribe, { name: sink.name, loadCheckpoint: checkpoint, apply }, signal, runtime);
  };
  const progress = new ProjectionProgress(pool);
  const names = projections.map(({ name }) => name);
  const probe = async () => {
    const [end, positions] = await Promise.all([store.readLastPosition(), progress.loadActivePositions(names)]);
    return new Map(
      [...positions].map(([name, { position, rebuiltTo }]) => {
        return [name, { isLagging: position < end, state: `${position} ${rebuiltTo}` }];
      }),
    );
  };
  const leadership = runWhileLeader(
    {
      databaseUrl,
      name: PROJECTOR_LEASE,
      signal: stopController.signal,
      reportError: runtime.reportError,
      leaseStatus,
      probe,
    },
    (lease) => projections.map((projection) => runProjection(projection, lease)),
  );
  const close = async () => {
    stopController.abort();
    await leadership;
    await wakeups?.close();
    await pool.end();
  };
  return { readyFields: {}, close };
}
