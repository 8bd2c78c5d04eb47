import type { StoredEvent } from './message.ts';
import type { RescheduledStream, Workflow, WorkflowSchedule } from './workflow.ts';

/** The streams of a workflow that have or may have a timer. Only these are woken by events of other categories. */
export class WaitingStreamIndex {
  private readonly workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'findAffectedId'>;
  private readonly schedule: WorkflowSchedule;
  /** Loaded when first needed, then updated. */
  private waitingIds: Promise<Set<string>> | undefined;

  constructor(
    workflow: Pick<Workflow<never, unknown, never, never>, 'name' | 'findAffectedId'>,
    schedule: WorkflowSchedule,
  ) {
    this.workflow = workflow;
    this.schedule = schedule;
  }

  /**
   * Returns the ids of the waiting streams that these events concern.
   * @param ownIds streams of the workflow with events in the same batch: from now on they may have a timer
   */
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
    this.waitingIds?.then(
      (ids) => (at === null ? ids.delete(id) : ids.add(id)),
      () => {}, // `findAffected` reports the error, and the ids are loaded again
    );
  }
}
