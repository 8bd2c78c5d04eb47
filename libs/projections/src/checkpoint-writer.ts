import type pg from 'pg';
import { Batcher } from '#postgres';

/** An advance of a checkpoint past events that change no row of the read model. */
interface CheckpointAdvance {
  readonly projection: string;
  readonly from: bigint;
  readonly to: bigint;
  /** The fencing token of the writer. */
  readonly token: number;
}

/**
 * Advances the checkpoints of read models that the last events do not change. Most events change few read models, and
 * all read models receive them in the same turn, so one statement advances the others.
 */
export class CheckpointWriter {
  private readonly batcher: Batcher<CheckpointAdvance, boolean>;

  constructor(private readonly pool: pg.Pool) {
    this.batcher = new Batcher((advances: readonly CheckpointAdvance[]) => this.write(advances));
  }

  /** @returns false if the checkpoint is not at `from`, or another writer has taken over */
  advance(advance: CheckpointAdvance): Promise<boolean> {
    return this.batcher.add(advance);
  }

  private async write(advances: readonly CheckpointAdvance[]): Promise<readonly boolean[]> {
    // Rows are locked in the order of their names, which prevents deadlocks with another projector.
    const { rows } = await this.pool.query<{ projection: string }>({
      name: 'advance-checkpoints',
      text: `with locked as (
               select c.projection, a.to_position
                 from checkpoints c
                 join unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
                        as a(projection, from_position, to_position, writer)
                   on c.projection = a.projection and c.position = a.from_position and c.writer = a.writer
                order by c.projection for update of c)
             update checkpoints c set position = l.to_position, stopped_at = null, stopped_why = null
               from locked l where c.projection = l.projection returning c.projection`,
      values: [
        advances.map(({ projection }) => projection),
        advances.map(({ from }) => from),
        advances.map(({ to }) => to),
        advances.map(({ token }) => token),
      ],
    });
    const advanced = new Set(rows.map(({ projection }) => projection));
    return advances.map(({ projection }) => advanced.has(projection));
  }
}
