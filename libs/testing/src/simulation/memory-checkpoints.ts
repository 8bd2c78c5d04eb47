import { type CheckpointStore, START_POSITION } from '#kernel';

/** Checkpoints of workflows in memory. A checkpoint never moves back: a process may still save one after its lease. */
export class MemoryCheckpoints implements CheckpointStore {
  private readonly positions = new Map<string, bigint>();

  async load(reader: string): Promise<bigint> {
    return this.positions.get(reader) ?? START_POSITION;
  }

  async save(reader: string, position: bigint): Promise<void> {
    const existing = this.positions.get(reader);
    if (existing === undefined || position > existing) this.positions.set(reader, position);
  }
}
