import type { StoredEvent } from './message.ts';
import type { RescheduledStream, Workflow, WorkflowSchedule } from './workflow.ts';

/** Which streams of a workflow wait for something: those that facts of other categories may concern. */
export class WaitingStreamIndex {
  private readonly workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'concerns'>;
  private readonly due: WorkflowSchedule;
  /** Read once, and followed since. */
  private known: Promise<Set<string>> | undefined;

  constructor(workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'concerns'>, due: WorkflowSchedule) {
    this.workflow = workflow;
    this.due = due;
  }

  /** @param own streams of the workflow that have facts among these, so that they may wait from now on */
  async concernedBy(facts: readonly StoredEvent[], own: readonly string[]): Promise<readonly string[]> {
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

  putOff({ id, at }: RescheduledStream): void {
    void this.known?.then((known) => (at === null ? known.delete(id) : known.add(id)));
  }
}
