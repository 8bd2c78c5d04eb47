/**
 * Answers to requests with an Idempotency-Key, and the claims of those that are still running: one row for each key of
 * an account. It says what was answered, never what may be charged. Times are the database's, the same for all gateways.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type pg from 'pg';
import type { Secrets } from '#application';

const KEPT = '24 hours';
/** How long a request may take to have its money held. One that takes longer may find that another is served instead. */
const CLAIM_LEASE_MS = 10_000;

export const answerMigrations = [
  {
    id: 'answers-1',
    sql: `create schema gateway;
          create table gateway.answers (
            account_id   uuid not null,
            key          text collate "C" not null, -- hashed
            request      text collate "C" not null, -- hashed: path and body
            request_id   uuid not null,             -- and of its hold
            revision     bigint not null,           -- of the account, before there was a hold
            owner        uuid not null,             -- who may write the row
            leased_until timestamptz not null,
            expires_at   timestamptz not null,
            lost         boolean not null default false,
            answer       bytea,                     -- compressed and sealed
            primary key (account_id, key)
          );
          alter table gateway.answers alter column answer set storage external;
          create index on gateway.answers (expires_at);`,
  },
  {
    id: 'answers-2',
    // Who claimed before there was this column never says that it holds anything, and may all the same.
    sql: 'alter table gateway.answers add column held boolean not null default true;',
  },
] as const;

/** Whose row it is: the request's with this key that runs now. */
export interface Claim {
  readonly accountId: string;
  readonly key: string;
  /** The path and the body: what must be the same for the answer to be the same. */
  readonly request: string;
  readonly requestId: string;
  readonly revision: number;
  readonly owner: string;
}

/** An earlier request with the same key. */
export interface Earlier extends Claim {
  /** Its gateway may still be at it. */
  readonly running: boolean;
  /** Its hold was made, and its upstream may have been called: the account's facts say what became of it. */
  readonly held: boolean;
  /** It was charged, and there is nothing to replay. */
  readonly lost: boolean;
  readonly answer: Buffer | null;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

interface Change {
  readonly sql: string;
  /** What else must be so, beside whose row it is. */
  readonly and?: string;
  /** From `$4` on. */
  readonly values?: readonly unknown[];
}

const compressed = promisify(gzip);
const decompressed = promisify(gunzip);

export class KeptAnswers {
  /** @param holdLeaseMs how long a request is respected that holds money, and whose gateway says no more what became of it */
  constructor(
    private readonly pool: pg.Pool,
    private readonly secrets: Secrets,
    private readonly holdLeaseMs: number,
  ) {}

  /** Takes a key, if no other request has it. Of any number at once, on any gateway, one does. */
  async claim({ accountId, key, request, requestId, revision, owner }: Claim): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      name: 'answer-claim',
      text: `insert into gateway.answers as kept
               (account_id, key, request, request_id, revision, owner, leased_until, expires_at, held)
             values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms', now() + interval '${KEPT}', false)
             on conflict (account_id, key) do update
                set request = excluded.request, request_id = excluded.request_id, revision = excluded.revision,
                    owner = excluded.owner, leased_until = excluded.leased_until, expires_at = excluded.expires_at,
                    held = false, lost = false, answer = null
              where kept.expires_at <= now()`,
      values: [accountId, key, request, requestId, revision, owner, CLAIM_LEASE_MS],
    });
    return rowCount === 1;
  }

  async find({ accountId, key }: Claim): Promise<Earlier | undefined> {
    const { rows } = await this.pool.query({
      name: 'answer-find',
      text: `select request, request_id, revision, owner, leased_until > now() as running, held, lost, answer
               from gateway.answers where account_id = $1 and key = $2`,
      values: [accountId, key],
    });
    const [row] = rows;
    if (!row) return undefined;
    const { request, request_id: requestId, revision, owner, running, held, lost, answer } = row;
    return { accountId, key, request, requestId, revision: Number(revision), owner, running, held, lost, answer };
  }

  /** Takes the key of a request that does not run any more, and is as it was found. Of any number at once, one does. */
  takeOver(earlier: Earlier, { requestId, owner, revision }: Claim): Promise<boolean> {
    const lease = `leased_until = now() + $6 * interval '1 ms'`;
    return this.change('take-over', earlier, {
      sql: `update gateway.answers set owner = $4, request_id = $5, revision = $8, held = false, ${lease}`,
      and: 'leased_until <= now() and held = $7',
      values: [owner, requestId, CLAIM_LEASE_MS, earlier.held, revision],
    });
  }

  /**
   * Says that the money is held, so that the upstream may be called. From now on it is respected for as long as its hold.
   * @returns false when another request has the key meanwhile
   */
  confirm(claim: Claim): Promise<boolean> {
    return this.change('confirm', claim, {
      sql: `update gateway.answers set held = true, leased_until = now() + $4 * interval '1 ms'`,
      values: [this.holdLeaseMs],
    });
  }

  /** Keeps the answer for those who ask again. */
  async keep(claim: Claim, { status, headers, body }: Answer): Promise<boolean> {
    const head = Buffer.from(`${JSON.stringify({ status, headers })}\n`);
    const sealed = this.secrets.sealBytes(await compressed(Buffer.concat([head, body])));
    return this.change('keep', claim, { sql: 'update gateway.answers set answer = $4', values: [sealed] });
  }

  /** @throws Error when it was sealed with another master key */
  async open(answer: Buffer): Promise<Answer> {
    const bytes = await decompressed(this.secrets.openBytes(answer));
    const end = bytes.indexOf('\n');
    return { ...JSON.parse(bytes.subarray(0, end).toString()), body: bytes.subarray(end + 1) };
  }

  /** The request was charged, and there is nothing to replay. */
  lose(claim: Claim): Promise<boolean> {
    return this.change('lose', claim, { sql: 'update gateway.answers set lost = true' });
  }

  /** The request has ended, and it is not known whether it was charged: the next request finds out. */
  giveUp(claim: Claim): Promise<boolean> {
    return this.change('give-up', claim, { sql: 'update gateway.answers set leased_until = now()' });
  }

  /** Nothing was charged: the next request is served as the first. */
  forget(claim: Claim): Promise<boolean> {
    return this.change('forget', claim, { sql: 'delete from gateway.answers' });
  }

  async removeExpired(): Promise<void> {
    await this.pool.query('delete from gateway.answers where expires_at <= now()');
  }

  /** Only its owner changes a row: who was taken for dead does not. */
  private async change(name: string, { accountId, key, owner }: Claim, { sql, and = 'true', values = [] }: Change) {
    const { rowCount } = await this.pool.query({
      name: `answer-${name}`,
      text: `${sql} where account_id = $1 and key = $2 and owner = $3 and ${and}`,
      values: [accountId, key, owner, ...values],
    });
    return rowCount === 1;
  }
}
