import type { DueStream, RescheduledStream, WakeOptions, WorkflowSchedule } from '#kernel';

interface Row {
  readonly at: string;
  readonly woken: number;
  readonly failures: number;
  readonly token: number;
  readonly ahead: boolean;
}

/** The schedule of workflows in memory. Each call is done at once, so it is atomic like a statement of the database. */
export class MemoryWorkflowSchedule implements WorkflowSchedule {
  readonly rows = new Map<string, Row>();
  private wakes = 0;

  async findDue(workflow: string, now: string, limit: number): Promise<readonly DueStream[]> {
    const prefix = `${workflow} `;
    const due = [...this.rows].filter(([key, { at }]) => key.startsWith(prefix) && at <= now);
    due.sort(([, a], [, b]) => Number(b.ahead) - Number(a.ahead) || Number(a.at > b.at) - Number(a.at < b.at));
    return due
      .slice(0, limit)
      .map(([key, { woken, failures, ahead }]) => ({ id: key.slice(prefix.length), woken, failures, ahead }));
  }

  async listWaiting(workflow: string): Promise<readonly string[]> {
    const prefix = `${workflow} `;
    return [...this.rows.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  async wake(
    workflow: string,
    ids: readonly string[],
    at: string,
    { isUrgent = true, token = 0 }: WakeOptions = {},
  ): Promise<void> {
    for (const id of new Set(ids)) {
      const existing = this.rows.get(`${workflow} ${id}`);
      const earlier = existing && existing.at < at ? existing.at : at;
      const row = {
        at: earlier,
        woken: ++this.wakes,
        failures: 0,
        token: Math.max(existing?.token ?? 0, token),
        ahead: isUrgent || existing?.ahead === true,
      };
      this.rows.set(`${workflow} ${id}`, row);
    }
  }

  async reschedule(workflow: string, token: number, rows: readonly RescheduledStream[]): Promise<void> {
    for (const { id, at, woken, failures } of rows) {
      const existing = this.rows.get(`${workflow} ${id}`);
      if (existing?.woken !== woken || existing.token > token) continue;
      if (at === null) this.rows.delete(`${workflow} ${id}`);
      else this.rows.set(`${workflow} ${id}`, { at, woken, failures, token, ahead: failures > 0 && failures <= 3 });
    }
  }
}
