import type { Recorded } from './message.ts';
import type { DueTable, PutOff, Workflow } from './workflow.ts';

/** Which streams of a workflow wait for something: those that facts of other categories may concern. */
export class WaitingStreams {
  private readonly workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'concerns'>;
  private readonly due: DueTable;
  /** Read once, and followed since. */
  private known: Promise<Set<string>> | undefined;

  constructor(workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'concerns'>, due: DueTable) {
    this.workflow = workflow;
    this.due = due;
  }

  /** @param own streams of the workflow that have facts among these, so that they may wait from now on */
  async concernedBy(facts: readonly Recorded[], own: readonly string[]): Promise<readonly string[]> {
    const { concerns, name } = this.workflow;
    if (!concerns) return [];
    this.known ??= this.due.waiting(name).then((ids) => new Set(ids));
    const known = await this.known.catch((error) => {
      this.known = undefined;
      throw error;
    });
    for (const id of own) known.add(id);
    const ids = new Set(facts.map((fact) => concerns(fact)));
    return [...ids].filter((id): id is string => id !== undefined && known.has(id));
  }

  putOff({ id, at }: PutOff): void {
    void this.known?.then((known) => (at === null ? known.delete(id) : known.add(id)));
  }
}
