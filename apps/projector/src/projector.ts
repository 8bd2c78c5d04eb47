import pg from 'pg';
import { type Foundation, leadWhile, type Running } from '#infra';
import { pump } from '#kernel';
import { BOOKS_OPTIONS, projections, sinkOf } from '#projections';

/** Starts the projector: one pump for each read model, in one process at a time; others stand by. */
export async function startProjector({ databaseUrl, store, runtime }: Foundation): Promise<Running> {
  const stop = new AbortController();
  const leading = leadWhile(
    databaseUrl,
    'projector',
    stop.signal,
    async (signal) => {
      const connection = { connectionString: databaseUrl, application_name: 'countinghouse-projector' };
      const pool = new pg.Pool({ ...connection, max: projections.length, options: BOOKS_OPTIONS });
      pool.on('error', (error) => runtime.alarm('an idle connection of the projector broke', error));
      const follow = store.follow.bind(store);
      await Promise.all(projections.map((projection) => pump(follow, sinkOf(projection, pool), signal, runtime)));
      await pool.end();
    },
    runtime.alarm,
  );
  const close = async () => {
    stop.abort();
    await leading;
  };
  return { where: {}, close };
}
