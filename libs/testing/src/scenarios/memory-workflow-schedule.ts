import type { DueStream, RescheduledStream, WorkflowSchedule } from '#kernel';

interface Row {
  readonly at: string;
  readonly woken: number;
  readonly failures: number;
  readonly token: number;
  readonly ahead: boolean;
}

/** Timers of workflows in memory. */
export class MemoryDueTable implements WorkflowSchedule {
  readonly rows = new Map<string, Row>();

  async findDue(workflow: string, now: string, limit: number): Promise<readonly DueStream[]> {
    const prefix = `${workflow} `;
    const due = [...this.rows].filter(([key, { at }]) => key.startsWith(prefix) && at <= now);
    due.sort(([, a], [, b]) => Number(b.ahead) - Number(a.ahead) || (a.at < b.at ? -1 : 1));
    return due
      .slice(0, limit)
      .map(([key, { woken, failures, ahead }]) => ({ id: key.slice(prefix.length), woken, failures, ahead }));
  }

  async listWaiting(workflow: string): Promise<readonly string[]> {
    const prefix = `${workflow} `;
    return [...this.rows.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  async wake(workflow: string, ids: readonly string[], at: string, ahead = true): Promise<void> {
    for (const id of new Set(ids)) {
      const known = this.rows.get(`${workflow} ${id}`);
      const earlier = known && known.at < at ? known.at : at;
      const row = {
        at: earlier,
        woken: (known?.woken ?? -1) + 1,
        failures: 0,
        token: known?.token ?? 0,
        ahead: ahead || known?.ahead === true,
      };
      this.rows.set(`${workflow} ${id}`, row);
    }
  }

  async reschedule(workflow: string, token: number, rows: readonly RescheduledStream[]): Promise<void> {
    for (const { id, at, woken, failures } of rows) {
      const known = this.rows.get(`${workflow} ${id}`);
      if (known?.woken !== woken || known.token > token) continue;
      if (at === null) this.rows.delete(`${workflow} ${id}`);
      else this.rows.set(`${workflow} ${id}`, { at, woken, failures, token, ahead: failures > 0 && failures <= 3 });
    }
  }
}
