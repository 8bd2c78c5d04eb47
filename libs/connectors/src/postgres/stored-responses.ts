import type pg from 'pg';
import { type Sealed, type StoredResponse, StoredResponses } from '#application';
import type { Instant } from '#domain';

/** Neither facts nor a read model: the only copy of these conversations, which the books do not need. */
export const storedResponseMigrations = [
  {
    id: 'stored-responses-1',
    sql: `
      create schema if not exists app;

      create table app.responses (
        id         text collate "C" primary key,
        account_id uuid not null,
        expires_at timestamptz not null,
        sealed_by  text collate "C" not null,
        box        text collate "C" not null
      );
      create index on app.responses (expires_at);
    `,
  },
  {
    id: 'stored-responses-2',
    sql: `
      create table app.response_items (
        account_id  uuid not null,
        id          text collate "C" not null,
        response_id text collate "C" not null references app.responses (id) on delete cascade,
        primary key (account_id, id)
      );
      create index on app.response_items (response_id);
    `,
  },
] as const;

/** Responses in PostgreSQL, as they were sealed. */
export class PostgresStoredResponses extends StoredResponses {
  constructor(private readonly pool: pg.Pool) {
    super();
  }

  async save({ id, accountId, expiresAt, sealed, itemIds }: StoredResponse): Promise<void> {
    await this.pool.query({
      name: 'response-save',
      text: `
        with response as (
          insert into app.responses (id, account_id, expires_at, sealed_by, box) values ($1, $2, $3, $4, $5)
        )
        insert into app.response_items (account_id, id, response_id)
        select $2, item, $1 from unnest($6::text[]) as item on conflict do nothing`,
      values: [id, accountId, expiresAt, sealed.key, sealed.box, itemIds],
    });
  }

  async find(accountId: string, id: string, now: Instant): Promise<Sealed | undefined> {
    const { rows } = await this.pool.query<{ sealed_by: string; box: string }>({
      name: 'response-find',
      text: 'select sealed_by, box from app.responses where id = $1 and account_id = $2 and expires_at > $3',
      values: [id, accountId, now],
    });
    return rows[0] && { key: rows[0].sealed_by, box: rows[0].box };
  }

  async findByItem(accountId: string, itemId: string, now: Instant): Promise<Sealed | undefined> {
    const { rows } = await this.pool.query<{ sealed_by: string; box: string }>({
      name: 'response-find-by-item',
      text: `
        select r.sealed_by, r.box from app.response_items i join app.responses r on r.id = i.response_id
        where i.id = $1 and i.account_id = $2 and r.expires_at > $3`,
      values: [itemId, accountId, now],
    });
    return rows[0] && { key: rows[0].sealed_by, box: rows[0].box };
  }

  async remove(accountId: string, id: string, now: Instant): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      name: 'response-remove',
      text: 'delete from app.responses where id = $1 and account_id = $2 and expires_at > $3',
      values: [id, accountId, now],
    });
    return rowCount === 1;
  }

  async removeExpired(now: Instant): Promise<void> {
    await this.pool.query('delete from app.responses where expires_at <= $1', [now]);
  }
}
