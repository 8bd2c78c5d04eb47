import { CHALLENGE, getStreamId, toPostings } from '#domain';
import { money } from '#kernel';
import type { LogProjection, ProjectedEvent } from './projection.ts';

type JournalRow = {
  readonly position: string;
  readonly line: number;
  /** Event time. */
  readonly at: string;
  readonly entry: string;
  /** Id of the hold, credit or challenge; empty for other entries. */
  readonly reference: string;
  readonly account: string;
  readonly customer: string | null;
  /** Pico-USD; positive is a debit. */
  readonly amount: string;
};

/** The double-entry journal: one row for every posting of every event that moves money. */
export const journal: LogProjection<JournalRow> = {
  kind: 'log',
  name: 'journal',
  version: 2,
  columns: ['position', 'line', 'at', 'entry', 'reference', 'account', 'customer', 'amount'],
  migrations: [
    {
      id: 'journal-1',
      sql: `create table books.journal (
              position  bigint not null,
              line      smallint not null,
              at        timestamptz not null,
              entry     text not null,
              reference text not null,
              account   text not null,
              customer  uuid,
              amount    numeric(38, 0) not null,
              primary key (position, line)
            )`,
    },
  ],
  toRows: (event) =>
    toPostings(event.stream, event).map(({ account, customer, amount }, line) => ({
      position: event.position.toString(),
      line,
      at: event.data.at,
      entry: event.type,
      reference: getReference(event),
      account,
      customer,
      amount: money.toJsonAmount(amount),
    })),
};

function getReference({ data, stream }: ProjectedEvent): string {
  if ('holdId' in data) return data.holdId;
  if ('creditId' in data) return data.creditId;
  return stream.startsWith(`${CHALLENGE}-`) ? getStreamId({ stream }) : '';
}
