import type pg from 'pg';
import { getStreamId } from '#domain';
import type { LogProjection } from './projection.ts';

type VideoRow = {
  readonly position: string;
  readonly account_id: string;
  readonly video_id: string;
};

/** The read model of the videos that accounts have requested. Their states are in their streams. */
export const videos: LogProjection<VideoRow> = {
  kind: 'log',
  name: 'videos',
  version: 1,
  columns: ['position', 'account_id', 'video_id'],
  migrations: [
    {
      id: 'videos-1',
      minContract: 2,
      changes: 'adds the read model of the videos of an account',
      sql: `create table books.videos (
              position   bigint primary key,
              account_id uuid not null,
              video_id   text not null
            );
            create index on books.videos (account_id, position);
            create index on books.videos (video_id);`,
    },
  ],
  toRows(event) {
    if (event.type !== 'VideoRequested' || event.data.accountId === null) return [];
    return [{ position: event.position.toString(), account_id: event.data.accountId, video_id: getStreamId(event) }];
  },
};

export interface VideoPageFilter {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** The last video of the page before. */
  readonly after: string | undefined;
}

export interface VideoPage {
  /** In the requested order, by the time of the request. */
  readonly ids: readonly string[];
  readonly hasMore: boolean;
}

/** Returns a page of the videos of an account; undefined if the account has no video `after`. */
export async function readVideoPage(
  pool: Pick<pg.Pool, 'query'>,
  accountId: string,
  { order, limit, after }: VideoPageFilter,
): Promise<VideoPage | undefined> {
  const start = after === undefined ? undefined : await findPosition(pool, accountId, after);
  if (after !== undefined && start === undefined) return undefined;
  const { rows } = await pool.query<Pick<VideoRow, 'video_id'>>({
    name: `videos-${order}-${start === undefined ? 'first' : 'next'}`,
    text: `select video_id from books.videos
            where account_id = $1 ${start === undefined ? '' : `and position ${order === 'asc' ? '>' : '<'} $3`}
            order by position ${order} limit $2`,
    values: [accountId, limit + 1, ...(start === undefined ? [] : [start])],
  });
  return { ids: rows.slice(0, limit).map(({ video_id }) => video_id), hasMore: rows.length > limit };
}

async function findPosition(
  pool: Pick<pg.Pool, 'query'>,
  accountId: string,
  videoId: string,
): Promise<string | undefined> {
  const { rows } = await pool.query<Pick<VideoRow, 'position'>>({
    name: 'videos-position',
    text: 'select position from books.videos where video_id = $1 and account_id = $2',
    values: [videoId, accountId],
  });
  return rows[0]?.position;
}
