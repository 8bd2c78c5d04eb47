import type { EventBatch, EventSink, StoredEvent } from '#kernel';
import { START_POSITION } from '#kernel';
import type { FoldProjection, ProjectedEvent, ReadModelRow } from '../../../projections/src/projection.ts';

/** The rows of a read model in memory, folded by the product's projection. */
export class MemoryReadModel<R extends ReadModelRow> implements EventSink {
  readonly name: string;
  readonly rows = new Map<string, R>();
  private position = START_POSITION;

  constructor(private readonly projection: FoldProjection<R>) {
    this.name = projection.name;
  }

  async loadCheckpoint(): Promise<bigint> {
    return this.position;
  }

  async apply({ events, position }: EventBatch): Promise<void> {
    if (position <= this.position) return;
    for (const event of events) if (event.position > this.position) this.evolve(event);
    this.position = position;
  }

  private evolve(stored: StoredEvent): void {
    const event = stored as ProjectedEvent;
    const key = this.projection.getKey(event);
    if (key === undefined) return;
    const row = this.projection.evolve(this.rows.get(key), event);
    if (row) this.rows.set(key, row);
    else this.rows.delete(key);
  }
}
