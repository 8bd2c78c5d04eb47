import type { StoredEvent } from './message.ts';
import type { RescheduledStream, Workflow, WorkflowSchedule } from './workflow.ts';

/** Which streams of a workflow wait for something: those that facts of other categories may concern. */
export class WaitingStreamIndex {
  private readonly workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'findAffectedId'>;
  private readonly schedule: WorkflowSchedule;
  /** Read once, and followed since. */
  private waitingIds: Promise<Set<string>> | undefined;

  constructor(
    workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'findAffectedId'>,
    schedule: WorkflowSchedule,
  ) {
    this.workflow = workflow;
    this.schedule = schedule;
  }

  /** @param ownIds streams of the workflow that have facts among these, so that they may wait from now on */
  async findAffected(events: readonly StoredEvent[], ownIds: readonly string[]): Promise<readonly string[]> {
    const { findAffectedId, name } = this.workflow;
    if (!findAffectedId) return [];
    this.waitingIds ??= this.schedule.listWaiting(name).then((ids) => new Set(ids));
    const waitingIds = await this.waitingIds.catch((error) => {
      this.waitingIds = undefined;
      throw error;
    });
    for (const id of ownIds) waitingIds.add(id);
    const ids = new Set(events.map((event) => findAffectedId(event)));
    return [...ids].filter((id): id is string => id !== undefined && waitingIds.has(id));
  }

  reschedule({ id, at }: RescheduledStream): void {
    void this.waitingIds?.then((ids) => (at === null ? ids.delete(id) : ids.add(id)));
  }
}
