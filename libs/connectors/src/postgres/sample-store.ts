/**
 * The samples that gateways share, in PostgreSQL. The table is unlogged: a crash of the database deletes the samples,
 * and gateways measure again. Their ids continue, because gateways read the samples after the last id that they know.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { MAX_SAMPLES, type Sample, SampleStore } from '#application';

export const sampleMigrations = [
  {
    id: 'samples-1',
    // An identity column of an unlogged table starts again at 1 after a crash.
    sql: `create sequence limits.sample_ids;
          create unlogged table limits.samples (
            name     text not null,             -- what was measured
            id       bigint not null default nextval('limits.sample_ids'),
            source   uuid not null,             -- the process that measured
            value    double precision not null,
            primary key (name, id)
          );
          create index on limits.samples (id);`,
  },
] as const;

export class PostgresSampleStore extends SampleStore {
  private readonly source = randomUUID();
  /** The id of the last sample that was read. */
  private lastId = '0';

  /** @param pool whose database has the schema `limits` */
  constructor(private readonly pool: pg.Pool) {
    super();
  }

  /** Also deletes the samples that newer ones have replaced, except those that another process is deleting. */
  async add(samples: readonly Sample[]): Promise<void> {
    await this.pool.query({
      name: 'add-samples',
      text: `with added as (
               insert into limits.samples (source, name, value)
               select $1, s.name, s.value from unnest($2::text[], $3::double precision[]) as s (name, value)
             ), replaced as (
               select o.name, o.id from (select distinct unnest($2::text[]) as name) as n
               cross join lateral (
                 select name, id from limits.samples where name = n.name order by id desc offset ${MAX_SAMPLES}
               ) as o
             ), locked as (
               select s.name, s.id from limits.samples s join replaced using (name, id) for update of s skip locked
             )
             delete from limits.samples s using locked where s.name = locked.name and s.id = locked.id`,
      values: [this.source, samples.map(({ name }) => name), samples.map(({ value }) => value)],
    });
  }

  /** A sample that another process commits late may be missed. That is harmless. */
  async readNew(): Promise<readonly Sample[]> {
    const { rows } = await this.pool.query<Sample & { readonly id: string }>({
      name: 'read-samples',
      text: 'select id, name, value from limits.samples where id > $2 and source <> $1 order by id',
      values: [this.source, this.lastId],
    });
    this.lastId = rows.at(-1)?.id ?? this.lastId;
    return rows;
  }
}
