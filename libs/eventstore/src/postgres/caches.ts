import type pg from 'pg';
import { type CheckpointStore, type Snapshot, type SnapshotStore, START } from '#kernel';

/** Snapshots in PostgreSQL, whichever event store is used. A later one is never replaced by an earlier one. */
export class PostgresSnapshots implements SnapshotStore {
  private readonly pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.pool = pool;
  }

  async load(stream: string, version: string): Promise<Snapshot | undefined> {
    const { rows } = await this.pool.query<{ revision: string; position: string; state: unknown }>({
      name: 'snapshot-load',
      text: 'select revision, position, state from es.snapshots where stream = $1 and version = $2',
      values: [stream, version],
    });
    const [row] = rows;
    return row && { revision: Number(row.revision), position: BigInt(row.position), state: row.state };
  }

  async save(stream: string, version: string, { revision, position, state }: Snapshot): Promise<void> {
    await this.pool.query({
      name: 'snapshot-save',
      text: `insert into es.snapshots as kept (stream, version, revision, position, state) values ($1, $2, $3, $4, $5)
             on conflict (stream) do update
                set version = excluded.version, revision = excluded.revision, position = excluded.position, state = excluded.state
              where kept.version <> excluded.version or kept.revision < excluded.revision`,
      values: [stream, version, revision, position, JSON.stringify(state)],
    });
  }
}

/** Checkpoints of readers that keep nothing else in PostgreSQL. */
export class PostgresCheckpoints implements CheckpointStore {
  private readonly pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.pool = pool;
  }

  async load(reader: string): Promise<bigint> {
    const { rows } = await this.pool.query<{ position: string }>({
      name: 'checkpoint-load',
      text: 'select position from es.checkpoints where reader = $1',
      values: [reader],
    });
    return rows[0] ? BigInt(rows[0].position) : START;
  }

  async save(reader: string, position: bigint): Promise<void> {
    await this.pool.query({
      name: 'checkpoint-save',
      text: `insert into es.checkpoints values ($1, $2)
             on conflict (reader) do update set position = excluded.position where es.checkpoints.position < excluded.position`,
      values: [reader, position],
    });
  }
}
