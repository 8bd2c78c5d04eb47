import type pg from 'pg';
import { CHALLENGE, type ChallengeEvent, type ChallengePaid, getStreamId } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { type FoldProjection, TEXT_TYPE_PARSERS } from './projection.ts';

/** `running`: the request that the challenge pays for is being served. Expiry is not a status. */
type ChallengeStatus = 'paid' | 'running' | 'used' | 'forfeited';

type ChallengeRow = {
  readonly challenge_id: string;
  readonly state: ChallengeStatus;
  readonly method: string;
  readonly backend: string;
  /** The required amount, in the coin's smallest unit. */
  readonly units: string;
  /** The received amount, in the same unit. */
  readonly paid_units: string;
  readonly price: string;
  /** Pico-USD. `available`, `held`, `charged` and `forfeited` add up to what was paid, less rounding. */
  readonly available: string;
  readonly held: string;
  readonly charged: string;
  readonly forfeited: string;
  /** How often the proof of payment was accepted. */
  readonly claims: number;
  /** How often the request was served. */
  readonly served: number;
  readonly paid_at: string;
  readonly forfeited_at: string | null;
};

/**
 * The read model of paid challenges: the required amount, what was paid, and what it was used for. Anyone can cause
 * challenges without paying them, so an unpaid challenge has no row. The terms of a challenge are in its stream.
 */
export const challenges: FoldProjection<ChallengeRow> = {
  kind: 'fold',
  name: 'challenges',
  version: 2,
  key: 'challenge_id',
  createdBy: 'ChallengePaid',
  columns: [
    'challenge_id',
    'state',
    'method',
    'backend',
    'units',
    'paid_units',
    'price',
    'available',
    'held',
    'charged',
    'forfeited',
    'claims',
    'served',
    'paid_at',
    'forfeited_at',
  ],
  migrations: [
    {
      id: 'challenges-1',
      sql: `create table books.challenges (
              challenge_id text primary key,
              state        text not null,
              model        text not null,
              method       text not null,
              backend      text not null,
              reference    text not null,
              units        numeric(38, 0) not null,
              paid_units   numeric(38, 0) not null,
              price        numeric(38, 0) not null,
              available    numeric(38, 0) not null,
              held         numeric(38, 0) not null,
              charged      numeric(38, 0) not null,
              forfeited    numeric(38, 0) not null,
              claims       integer not null,
              served       integer not null,
              issued_at    timestamptz not null,
              expires_at   timestamptz not null,
              usable_until timestamptz not null,
              paid_at      timestamptz,
              forfeited_at timestamptz
            ) with (fillfactor = 70);
            create index on books.challenges (usable_until) where available > 0;`,
    },
    {
      // What only the event of issuing has. Unpaid challenges lose their rows when the new version is rebuilt.
      id: 'challenges-2',
      sql: `alter table books.challenges
              drop column model, drop column reference,
              drop column issued_at, drop column expires_at, drop column usable_until;
            create index on books.challenges (paid_at) where available > 0;`,
    },
  ],
  getKey: (event) =>
    event.stream.startsWith(`${CHALLENGE}-`) && event.type !== 'ChallengeIssued' ? getStreamId(event) : undefined,
  evolve(row, event) {
    if (event.type === 'ChallengePaid') return createRow(getStreamId(event), event.data);
    return row ? evolveRow(row, event as ChallengeEvent) : null;
  },
};

function createRow(challenge_id: string, data: ChallengePaid['data']): ChallengeRow {
  const { method, backend, units, price, at } = data;
  return {
    challenge_id,
    state: 'paid',
    method,
    backend,
    units,
    paid_units: units,
    price,
    available: price,
    held: '0',
    charged: '0',
    forfeited: '0',
    claims: 0,
    served: 0,
    paid_at: at,
    forfeited_at: null,
  };
}

function evolveRow(row: ChallengeRow, { type, data }: ChallengeEvent): ChallengeRow {
  switch (type) {
    case 'ChallengeOverpaid': {
      const [paid_units, available] = [sum(row.paid_units, data.units), sum(row.available, data.amount)];
      return { ...row, paid_units, available };
    }
    case 'ChallengeForfeited': {
      const [available, forfeited] = [sum(row.available, `-${data.amount}`), sum(row.forfeited, data.amount)];
      return { ...row, state: 'forfeited', available, forfeited, forfeited_at: data.at };
    }
    case 'FundsHeld': {
      const [available, held] = [sum(row.available, `-${data.amount}`), data.amount];
      return { ...row, state: 'running', available, held, claims: row.claims + 1 };
    }
    case 'HoldSettled': {
      const { charged } = data;
      const available = sum(row.available, data.held, `-${charged}`);
      return {
        ...row,
        state: 'used',
        served: row.served + 1,
        charged: sum(row.charged, charged),
        available,
        held: '0',
      };
    }
    case 'ChargeReversed': {
      const [available, charged] = [sum(row.available, data.charged), sum(row.charged, `-${data.charged}`)];
      const served = row.served - 1;
      return { ...row, state: served > 0 ? 'used' : 'paid', served, available, charged };
    }
    case 'HoldReleased':
    case 'HoldExpired':
      return {
        ...row,
        state: row.served > 0 ? 'used' : 'paid',
        available: sum(row.available, data.held),
        held: '0',
      };
    default:
      return row;
  }
}

function sum(...amounts: readonly string[]): string {
  return amounts.reduce((total, amount) => total + BigInt(amount), 0n).toString();
}

export interface ChallengeView {
  readonly challengeId: string;
  readonly state: ChallengeStatus;
  readonly method: string;
  readonly backend: string;
  readonly price: PicoUsd;
  readonly available: PicoUsd;
  readonly held: PicoUsd;
  readonly charged: PicoUsd;
  readonly forfeited: PicoUsd;
  readonly claims: number;
  readonly served: number;
  readonly paidAt: string;
  readonly forfeitedAt: string | undefined;
}

/** Returns the challenges that have an available, held or forfeited amount, in the order of their payments. */
export async function readChallenges(pool: Pick<pg.Pool, 'query'>): Promise<readonly ChallengeView[]> {
  const { rows } = await pool.query<ChallengeRow>({
    text: `select * from books.challenges where available <> 0 or held <> 0 or forfeited <> 0
            order by paid_at, challenge_id`,
    types: TEXT_TYPE_PARSERS,
  });
  return rows.map(toView);
}

/** Maximum number of challenges that one sweep forfeits. */
const MAX_UNCLAIMED_PER_SWEEP = 500;

/**
 * Returns the ids of challenges that were paid before `before`, and have an available amount and no hold. These are at
 * most the `MAX_UNCLAIMED_PER_SWEEP` that were paid first.
 */
export async function findUnclaimedChallenges(pool: pg.Pool, before: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ challenge_id: string }>({
    name: 'unclaimed-challenges',
    text: `select challenge_id from books.challenges
            where available > 0 and held = 0 and state <> 'running' and paid_at < $1
            order by paid_at limit ${MAX_UNCLAIMED_PER_SWEEP}`,
    values: [before],
  });
  return rows.map(({ challenge_id }) => challenge_id);
}

function toView(row: ChallengeRow): ChallengeView {
  return {
    challengeId: row.challenge_id,
    state: row.state,
    method: row.method,
    backend: row.backend,
    price: money.parseJsonAmount(row.price),
    available: money.parseJsonAmount(row.available),
    held: money.parseJsonAmount(row.held),
    charged: money.parseJsonAmount(row.charged),
    forfeited: money.parseJsonAmount(row.forfeited),
    claims: row.claims,
    served: row.served,
    paidAt: row.paid_at,
    forfeitedAt: row.forfeited_at ?? undefined,
  };
}
