import type { Snapshot, SnapshotStore } from '#kernel';

interface SavedSnapshot extends Omit<Snapshot, 'state'> {
  readonly version: string;
  /** JSON, as in the database, so that no two processes share an object. */
  readonly state: string;
}

/** Snapshots in memory, one for each stream. An earlier one never replaces a later one of the same version. */
export class MemorySnapshots implements SnapshotStore {
  private readonly saved = new Map<string, SavedSnapshot>();

  async load(stream: string, version: string): Promise<Snapshot | undefined> {
    const saved = this.saved.get(stream);
    if (saved?.version !== version) return undefined;
    const { revision, position, lastEventId, state } = saved;
    return { revision, position, lastEventId, state: JSON.parse(state) };
  }

  async save(stream: string, version: string, { state, ...head }: Snapshot): Promise<void> {
    const existing = this.saved.get(stream);
    if (existing?.version === version && existing.revision >= head.revision) return;
    this.saved.set(stream, { ...head, version, state: JSON.stringify(state) });
  }

  async drop(stream: string): Promise<void> {
    this.saved.delete(stream);
  }
}
