import { createHmac, timingSafeEqual } from 'node:crypto';
import type pg from 'pg';
import { type CheckpointStore, type Snapshot, type SnapshotStore, START_POSITION } from '#kernel';

/** A part of the version that a snapshot is kept under: programs from before snapshots were signed keep their own. */
const SIGNED = 'signed 1';
const MAC_BYTES = 32;

interface SnapshotRow {
  readonly revision: string;
  readonly position: string;
  readonly last: string;
  readonly state: string;
  readonly mac: Buffer | null;
}

/**
 * Snapshots in PostgreSQL, whichever event store is used. A later one is never replaced by an earlier one. Whoever may write
 * to the database cannot make one up, change it or give it to another stream: each has a MAC.
 */
export class PostgresSnapshots implements SnapshotStore {
  /** @param keys secret; the first signs, and each of them may have signed what is kept */
  constructor(
    private readonly pool: pg.Pool,
    private readonly keys: readonly Buffer[],
  ) {}

  async load(stream: string, version: string): Promise<Snapshot | undefined> {
    const { rows } = await this.pool.query<SnapshotRow>({
      name: 'snapshot-load',
      text: 'select revision, position, last, state::text, mac from es.snapshots where stream = $1 and version = $2',
      values: [stream, signed(version)],
    });
    const [row] = rows;
    if (!row) return undefined;
    const snapshot = { revision: Number(row.revision), position: BigInt(row.position), lastEventId: row.last };
    const authentic = this.keys.some((key) => {
      return timingSafeEqual(macOf({ stream, version, ...snapshot, state: row.state }, key), digestIn(row.mac));
    });
    if (!authentic) {
      await this.drop(stream);
      throw new Error(`what is kept under revision ${row.revision} was not kept by us`);
    }
    return { ...snapshot, state: JSON.parse(row.state) };
  }

  async save(stream: string, version: string, { state, ...at }: Snapshot): Promise<void> {
    const text = JSON.stringify(state);
    const mac = macOf({ stream, version, ...at, state: text }, this.keys[0] as Buffer);
    await this.pool.query({
      name: 'snapshot-save',
      text: `insert into es.snapshots as kept (stream, version, revision, position, last, state, mac)
             values ($1, $2, $3, $4, $5, $6, $7)
             on conflict (stream) do update
                set version = excluded.version, revision = excluded.revision, position = excluded.position,
                    last = excluded.last, state = excluded.state, mac = excluded.mac
              where kept.version <> excluded.version or kept.revision < excluded.revision`,
      values: [stream, signed(version), at.revision, at.position, at.lastEventId, text, mac],
    });
  }

  async drop(stream: string): Promise<void> {
    await this.pool.query('delete from es.snapshots where stream = $1', [stream]);
  }
}

function signed(version: string): string {
  return `${version} ${SIGNED}`;
}

/** What it is the state of is as much part of it as the state. */
function macOf({ stream, version, revision, position, lastEventId: last, state }: Signed, key: Buffer): Buffer {
  const about = JSON.stringify([stream, version, revision, String(position), last]);
  return createHmac('sha256', key).update(about).update('\n').update(state).digest();
}

interface Signed extends Omit<Snapshot, 'state'> {
  readonly stream: string;
  readonly version: string;
  readonly state: string;
}

/** Of the length of a MAC, whatever is kept. */
function digestIn(mac: Buffer | null): Buffer {
  return mac?.length === MAC_BYTES ? mac : Buffer.alloc(MAC_BYTES);
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
    return rows[0] ? BigInt(rows[0].position) : START_POSITION;
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
