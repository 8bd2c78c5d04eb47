import type pg from 'pg';
import { type DomainEvent, getStreamId, VIDEO, type VideoEvent, type VideoRequested } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { type FoldProjection, TEXT_TYPE_PARSERS } from './projection.ts';

const EVENT_TYPES: ReadonlySet<DomainEvent['type']> = new Set<VideoEvent['type']>([
  'VideoRequested',
  'VideoHeld',
  'VideoSubmissionBegun',
  'VideoSubmitted',
  'VideoSubmissionFailed',
  'VideoMade',
  'VideoStored',
  'VideoSettled',
  'VideoFailed',
  'VideoReleased',
  'VideoCostClosed',
]);

/** `open`: the job has failed, and its provider may still invoice a cost that is not recorded. */
type JobState = 'requested' | 'held' | 'submitting' | 'unknown' | 'submitted' | 'made' | 'stored' | 'failed' | 'open';

type VideoJobRow = {
  readonly job_id: string;
  readonly account_id: string;
  readonly model: string;
  readonly state: JobState;
  readonly held: string;
  /** The providers that the job can be submitted to, in this order, separated by spaces. */
  readonly vendors: string;
  /** The provider that has accepted the job, or may have accepted it. */
  readonly vendor: string | null;
  readonly vendor_id: string | null;
  /** After a failure, the maximum that the provider may still invoice. */
  readonly open_cost: string | null;
  readonly deadline: string;
  readonly requested_at: string;
  readonly changed_at: string;
};

/** The read model of running video jobs and of failed ones with an open cost. Other ended jobs have no row. */
export const videoJobs: FoldProjection<VideoJobRow> = {
  kind: 'fold',
  name: 'video_jobs',
  version: 1,
  key: 'job_id',
  createdBy: 'VideoRequested',
  columns: [
    'job_id',
    'account_id',
    'model',
    'state',
    'held',
    'vendors',
    'vendor',
    'vendor_id',
    'open_cost',
    'deadline',
    'requested_at',
    'changed_at',
  ],
  migrations: [
    {
      id: 'video-jobs-1',
      sql: `create table books.video_jobs (
              job_id       text primary key,
              account_id   uuid not null,
              model        text not null,
              state        text not null,
              held         numeric(38, 0) not null,
              vendors      text not null,
              vendor       text,
              vendor_id    text,
              open_cost    numeric(38, 0),
              deadline     timestamptz not null,
              requested_at timestamptz not null,
              changed_at   timestamptz not null
            );`,
    },
  ],
  getKey: (event) =>
    EVENT_TYPES.has(event.type) && event.stream.startsWith(`${VIDEO}-`) ? getStreamId(event) : undefined,
  evolve(row, event) {
    if (event.type === 'VideoRequested') return createRow(getStreamId(event), event.data);
    return row ? evolveRow(row, event as VideoEvent) : null;
  },
};

function createRow(job_id: string, data: VideoRequested['data']): VideoJobRow {
  const { query, hold, endpoints, deadline, at } = data;
  // The id of the account, or of the challenge that pays.
  const account_id = data.accountId ?? getStreamId({ stream: hold.payer });
  return {
    job_id,
    account_id,
    model: query.model,
    state: 'requested',
    held: hold.amount,
    vendors: endpoints.map(({ creditor }) => creditor).join(' '),
    vendor: null,
    vendor_id: null,
    open_cost: null,
    deadline,
    requested_at: at,
    changed_at: at,
  };
}

function evolveRow(row: VideoJobRow, { type, data }: VideoEvent): VideoJobRow | null {
  const changed = { ...row, changed_at: data.at };
  switch (type) {
    case 'VideoHeld':
      return { ...changed, state: 'held' };
    case 'VideoSubmissionBegun':
      return { ...changed, state: 'submitting', vendor: row.vendors.split(' ')[data.endpoint] ?? null };
    case 'VideoSubmitted':
      return { ...changed, state: 'submitted', vendor_id: data.vendorId };
    case 'VideoSubmissionFailed':
      return data.outcome === 'unknown'
        ? { ...changed, state: 'unknown' }
        : { ...changed, state: 'held', vendor: null };
    case 'VideoMade':
      return { ...changed, state: 'made' };
    case 'VideoStored':
      return { ...changed, state: 'stored' };
    case 'VideoFailed':
      return { ...changed, state: 'failed', open_cost: data.open?.most ?? null };
    case 'VideoReleased':
      return row.open_cost === null ? null : { ...changed, state: 'open' };
    case 'VideoSettled':
    case 'VideoCostClosed':
      return null;
    default:
      return row;
  }
}

export interface VideoJobView {
  readonly jobId: string;
  readonly accountId: string;
  readonly model: string;
  readonly state: JobState;
  readonly held: PicoUsd;
  readonly vendor: string | undefined;
  readonly vendorId: string | undefined;
  readonly openCost: PicoUsd | undefined;
  readonly deadline: string;
  readonly requestedAt: string;
  readonly changedAt: string;
}

/** Returns the running jobs and the failed ones with an open cost, oldest first. */
export async function readVideoJobs(pool: Pick<pg.Pool, 'query'>): Promise<readonly VideoJobView[]> {
  const { rows } = await pool.query<VideoJobRow>({
    text: 'select * from books.video_jobs order by requested_at, job_id',
    types: TEXT_TYPE_PARSERS,
  });
  return rows.map((row) => ({
    jobId: row.job_id,
    accountId: row.account_id,
    model: row.model,
    state: row.state,
    held: money.parseJsonAmount(row.held),
    vendor: row.vendor ?? undefined,
    vendorId: row.vendor_id ?? undefined,
    openCost: row.open_cost === null ? undefined : money.parseJsonAmount(row.open_cost),
    deadline: row.deadline,
    requestedAt: row.requested_at,
    changedAt: row.changed_at,
  }));
}
