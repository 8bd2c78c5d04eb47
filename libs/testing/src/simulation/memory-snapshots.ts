import type { Snapshot, SnapshotStore } from '#kernel';

/** Snapshots of any revision, as they are saved. */
export class MemorySnapshots implements SnapshotStore {
  readonly saved = new Map<string, Snapshot>();

  async load(stream: string, version: string): Promise<Snapshot | undefined> {
    return this.saved.get(`${version} ${stream}`);
  }

  async save(stream: string, version: string, snapshot: Snapshot): Promise<void> {
    this.saved.set(`${version} ${stream}`, structuredClone(snapshot));
  }

  async drop(stream: string): Promise<void> {
    for (const key of this.saved.keys()) if (key.endsWith(` ${stream}`)) this.saved.delete(key);
  }
}
