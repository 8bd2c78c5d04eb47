/**
 * Answers to requests with an Idempotency-Key, and the claims of those that are still running: one row for each key of
 * an account. It says what was answered, never what may be charged. Times are the database's, the same for all gateways.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type pg from 'pg';
import type { Secrets } from '#application';

const KEPT = '24 hours';

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
  /** It was charged, and there is nothing to replay. */
  readonly lost: boolean;
  readonly answer: Buffer | null;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

const compressed = promisify(gzip);
const decompressed = promisify(gunzip);

export class KeptAnswers {
  /** @param leaseMs how long a claim is respected whose gateway does not say any more what became of it */
  constructor(
    private readonly pool: pg.Pool,
    private readonly secrets: Secrets,
    private readonly leaseMs: number,
  ) {}

  /** Takes a key, if no other request has it. Of any number at once, on any gateway, one does. */
  async claim({ accountId, key, request, requestId, revision, owner }: Claim): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      name: 'answer-claim',
      text: `insert into gateway.answers as kept
               (account_id, key, request, request_id, revision, owner, leased_until, expires_at)
             values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms', now() + interval '${KEPT}')
             on conflict (account_id, key) do update
                set request = excluded.request, request_id = excluded.request_id, revision = excluded.revision,
                    owner = excluded.owner, leased_until = excluded.leased_until, expires_at = excluded.expires_at,
                    lost = false, answer = null
              where kept.expires_at <= now()`,
      values: [accountId, key, request, requestId, revision, owner, this.leaseMs],
    });
    return rowCount === 1;
  }

  async find({ accountId, key }: Claim): Promise<Earlier | undefined> {
    const { rows } = await this.pool.query({
      name: 'answer-find',
      text: `select request, request_id, revision, owner, leased_until > now() as running, lost, answer
               from gateway.answers where account_id = $1 and key = $2`,
      values: [accountId, key],
    });
    const [row] = rows;
    if (!row) return undefined;
    const { request, request_id: requestId, revision, owner, running, lost, answer } = row;
    return { accountId, key, request, requestId, revision: Number(revision), owner, running, lost, answer };
  }

  /** Takes the key of a request that does not run any more. Of any number at once, one does. */
  takeOver(earlier: Earlier, { requestId, owner }: Claim): Promise<boolean> {
    const set = `owner = $4, request_id = $5, leased_until = now() + $6 * interval '1 ms'`;
    return this.change('take-over', earlier, `update gateway.answers set ${set}`, [owner, requestId, this.leaseMs]);
  }

  /** Keeps the answer for those who ask again. */
  async keep(claim: Claim, { status, headers, body }: Answer): Promise<boolean> {
    const head = Buffer.from(`${JSON.stringify({ status, headers })}\n`);
    const sealed = this.secrets.sealBytes(await compressed(Buffer.concat([head, body])));
    return this.change('keep', claim, 'update gateway.answers set answer = $4', [sealed]);
  }

  /** @throws Error when it was sealed with another master key */
  async open(answer: Buffer): Promise<Answer> {
    const bytes = await decompressed(this.secrets.openBytes(answer));
    const end = bytes.indexOf('\n');
    return { ...JSON.parse(bytes.subarray(0, end).toString()), body: bytes.subarray(end + 1) };
  }

  /** The request was charged, and there is nothing to replay. */
  lose(claim: Claim): Promise<boolean> {
    return this.change('lose', claim, 'update gateway.answers set lost = true');
  }

  /** The request has ended, and it is not known whether it was charged: whoever asks again finds out. */
  giveUp(claim: Claim): Promise<boolean> {
    return this.change('give-up', claim, 'update gateway.answers set leased_until = now()');
  }

  /** Nothing was charged: whoever asks again is served as the first. */
  forget(claim: Claim): Promise<boolean> {
    return this.change('forget', claim, 'delete from gateway.answers');
  }

  async removeExpired(): Promise<void> {
    await this.pool.query('delete from gateway.answers where expires_at <= now()');
  }

  /** Only its owner changes a row: who was taken for dead does not. */
  private async change(name: string, { accountId, key, owner }: Claim, sql: string, values: unknown[] = []) {
    const { rowCount } = await this.pool.query({
      name: `answer-${name}`,
      text: `${sql} where account_id = $1 and key = $2 and owner = $3`,
      values: [accountId, key, owner, ...values],
    });
    return rowCount === 1;
  }
}
