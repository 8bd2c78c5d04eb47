import type pg from 'pg';
import type { DueStream, RescheduledStream, WakeOptions, WorkflowSchedule } from '#kernel';

/** After more failures in a row than this, a stream has the priority of a routine poll. */
const MAX_URGENT_FAILURES = 3;

/**
 * The schedule of workflows in PostgreSQL. Statements lock rows in the order of their ids, which prevents deadlocks.
 */
export class PostgresWorkflowSchedule implements WorkflowSchedule {
  private readonly pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.pool = pool;
  }

  async findDue(workflow: string, now: string, limit: number): Promise<readonly DueStream[]> {
    const { rows } = await this.pool.query<Omit<DueStream, 'woken'> & { readonly woken: string }>({
      name: 'due-find',
      text: `select id, woken, failures, ahead from es.due
              where workflow = $1 and at <= $2 order by ahead desc, at limit $3`,
      values: [workflow, now, limit],
    });
    return rows.map(({ woken, ...row }) => ({ ...row, woken: Number(woken) }));
  }

  /** Returns for every workflow with due streams the longest time for which one of them has been due. */
  async loadOverdueMs(): Promise<Readonly<Record<string, number>>> {
    const { rows } = await this.pool.query<{ workflow: string; late: number }>({
      name: 'due-overdue',
      text: `select workflow, (extract(epoch from clock_timestamp() - min(at)) * 1000)::float8 as late
               from es.due where at <= clock_timestamp() group by workflow`,
    });
    return Object.fromEntries(rows.map(({ workflow, late }) => [workflow, Math.round(late)]));
  }

  async listWaiting(workflow: string): Promise<readonly string[]> {
    const { rows } = await this.pool.query<{ id: string }>({
      name: 'due-waiting',
      text: 'select id from es.due where workflow = $1',
      values: [workflow],
    });
    return rows.map(({ id }) => id);
  }

  async wake(
    workflow: string,
    ids: readonly string[],
    at: string,
    { isUrgent = true, token = 0 }: WakeOptions = {},
  ): Promise<void> {
    await this.pool.query({
      name: 'due-wake',
      text: `insert into es.due as d (workflow, id, at, ahead, token, woken)
             select $1, each.id, $3, $4, $5, nextval('es.due_woken')
               from (select distinct unnest($2::text[]) collate "C" as id) as each order by each.id
             on conflict (workflow, id) do update
                set at = least(d.at, excluded.at), woken = excluded.woken, failures = 0,
                    ahead = d.ahead or excluded.ahead, token = greatest(d.token, excluded.token)`,
      values: [workflow, ids, at, isUrgent, token],
    });
  }

  async reschedule(workflow: string, token: number, rows: readonly RescheduledStream[]): Promise<void> {
    await this.pool.query({
      name: 'due-put-off',
      text: `with asleep as (
               select d.id, g.at, g.failures
                 from es.due d
                 join json_to_recordset($3) as g(id text, at timestamptz, woken bigint, failures integer) on g.id = d.id
                where d.workflow = $1 and d.woken = g.woken and d.token <= $2
                order by d.id for update of d),
             removed as (
               delete from es.due d using asleep a where d.workflow = $1 and d.id = a.id and a.at is null)
             update es.due d set at = a.at, failures = a.failures, token = $2, ahead = a.failures between 1 and ${MAX_URGENT_FAILURES}
               from asleep a where d.workflow = $1 and d.id = a.id and a.at is not null`,
      values: [workflow, token, JSON.stringify(rows)],
    });
  }
}
