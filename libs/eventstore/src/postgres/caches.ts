import { createHmac, timingSafeEqual } from 'node:crypto';
import type pg from 'pg';
import { type CheckpointStore, type Snapshot, type SnapshotStore, START_POSITION } from '#kernel';
import { Batcher } from '#postgres';

/**
 * Part of the stored version, so that older builds, which do not sign snapshots, and this build ignore each other's
 * snapshots.
 */
const SIGNATURE_VERSION = 'signed 1';
const MAC_BYTES = 32;

interface SnapshotRow {
  readonly revision: string;
  readonly position: string;
  readonly last: string;
  readonly state: string;
  readonly mac: Buffer | null;
}

/**
 * Snapshots in PostgreSQL, for every event store. An earlier snapshot never replaces a later one of the same version.
 * Every snapshot has a MAC: anyone who can only write to the database cannot forge or change a snapshot, or move it to
 * another stream.
 */
export class PostgresSnapshots implements SnapshotStore {
  /** @param keys secret keys: the first signs, and all verify */
  constructor(
    private readonly pool: pg.Pool,
    private readonly keys: readonly Buffer[],
  ) {}

  async load(stream: string, version: string): Promise<Snapshot | undefined> {
    const { rows } = await this.pool.query<SnapshotRow>({
      name: 'snapshot-load',
      text: 'select revision, position, last, state::text, mac from es.snapshots where stream = $1 and version = $2',
      values: [stream, toSignedVersion(version)],
    });
    const [row] = rows;
    if (!row) return undefined;
    const snapshot = { revision: Number(row.revision), position: BigInt(row.position), lastEventId: row.last };
    const isAuthentic = this.keys.some((key) => {
      return timingSafeEqual(calculateMac({ stream, version, ...snapshot, state: row.state }, key), toDigest(row.mac));
    });
    if (!isAuthentic) {
      await this.drop(stream);
      throw new Error(`the snapshot at revision ${row.revision} was not written by this installation`);
    }
    return { ...snapshot, state: JSON.parse(row.state) };
  }

  async save(stream: string, version: string, { state, ...head }: Snapshot): Promise<void> {
    const text = JSON.stringify(state);
    const mac = calculateMac({ stream, version, ...head, state: text }, this.keys[0] as Buffer);
    await this.pool.query({
      name: 'snapshot-save',
      text: `insert into es.snapshots as kept (stream, version, revision, position, last, state, mac)
             values ($1, $2, $3, $4, $5, $6, $7)
             on conflict (stream) do update
                set version = excluded.version, revision = excluded.revision, position = excluded.position,
                    last = excluded.last, state = excluded.state, mac = excluded.mac
              where kept.version <> excluded.version or kept.revision < excluded.revision`,
      values: [stream, toSignedVersion(version), head.revision, head.position, head.lastEventId, text, mac],
    });
  }

  async drop(stream: string): Promise<void> {
    await this.pool.query('delete from es.snapshots where stream = $1', [stream]);
  }
}

function toSignedVersion(version: string): string {
  return `${version} ${SIGNATURE_VERSION}`;
}

/** Covers the stream, version, revision, position and last event as well as the state. */
function calculateMac(
  { stream, version, revision, position, lastEventId, state }: SignedSnapshot,
  key: Buffer,
): Buffer {
  const signedFields = JSON.stringify([stream, version, revision, String(position), lastEventId]);
  return createHmac('sha256', key).update(signedFields).update('\n').update(state).digest();
}

interface SignedSnapshot extends Omit<Snapshot, 'state'> {
  readonly stream: string;
  readonly version: string;
  readonly state: string;
}

/**
 * Returns a buffer with the length of a MAC, as `timingSafeEqual` requires. A missing MAC, or one of another length,
 * becomes zeros.
 */
function toDigest(mac: Buffer | null): Buffer {
  return mac?.length === MAC_BYTES ? mac : Buffer.alloc(MAC_BYTES);
}

interface SavedCheckpoint {
  readonly reader: string;
  readonly position: bigint;
}

/**
 * Checkpoints of the workflows, saved separately from their other writes. A checkpoint never moves back. One statement
 * saves those of one turn of the event loop, in which all workflows of a process receive the same events.
 */
export class PostgresCheckpoints implements CheckpointStore {
  private readonly batcher: Batcher<SavedCheckpoint, undefined>;

  constructor(private readonly pool: pg.Pool) {
    this.batcher = new Batcher((checkpoints: readonly SavedCheckpoint[]) => this.write(checkpoints));
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
    await this.batcher.add({ reader, position });
  }

  private async write(checkpoints: readonly SavedCheckpoint[]): Promise<readonly undefined[]> {
    // Rows are locked in the order of their names, which prevents deadlocks with another process.
    await this.pool.query({
      name: 'checkpoint-save',
      text: `insert into es.checkpoints
             select reader, max(position) from unnest($1::text[], $2::bigint[]) as c(reader, position)
              group by reader order by reader
             on conflict (reader) do update set position = excluded.position where es.checkpoints.position < excluded.position`,
      values: [checkpoints.map(({ reader }) => reader), checkpoints.map(({ position }) => position)],
    });
    return checkpoints.map(() => undefined);
  }
}
