/**
 * Responses to requests with an Idempotency-Key, and the claims of requests that are still running: one row for each
 * payer and key. The rows determine which response is repeated, never what may be charged. All times come from the
 * clock of the database, which all gateways share.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type pg from 'pg';
import {
  type ClaimOutcome,
  type ExistingClaim,
  type FileStore,
  type IdempotencyClaim,
  IdempotencyStore,
  restoreImages,
  type SavedHttpResponse,
  type Secrets,
} from '#application';
import { canRemoveSql } from './stored-bytes.ts';

const RETENTION_SECONDS = 24 * 60 * 60;
/** How long a request may take to get its hold. After that, another request with the same key may be served instead. */
const CLAIM_LEASE_MS = 10_000;

export const idempotencyMigrations = [
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
    // Older builds do not set this column when they hold money, so existing claims may have a hold.
    sql: 'alter table gateway.answers add column held boolean not null default true;',
  },
  {
    id: 'answers-3',
    sql: 'alter table gateway.answers rename column account_id to payer_id; -- of an account, or of a challenge',
  },
] as const;

interface ClaimUpdate {
  readonly sql: string;
  /** Condition in addition to payer, key and owner. */
  readonly condition?: string;
  /** Parameters from `$4` on. */
  readonly values?: readonly unknown[];
}

const compress = promisify(gzip);
const decompress = promisify(gunzip);

export class PostgresIdempotencyStore extends IdempotencyStore {
  /** @param holdLeaseMs how long the claim of a request with a hold is valid if its gateway does not end it */
  constructor(
    private readonly pool: pg.Pool,
    private readonly secrets: Secrets,
    private readonly files: Pick<FileStore, 'find'>,
    private readonly holdLeaseMs: number,
  ) {
    super();
  }

  async claim({
    payer,
    key,
    request,
    requestId,
    revision,
    owner,
    lifetimeSeconds = RETENTION_SECONDS,
  }: IdempotencyClaim): Promise<number | undefined> {
    const { rows } = await this.pool.query({
      name: 'answer-claim',
      text: `insert into gateway.answers as kept
               (payer_id, key, request, request_id, revision, owner, leased_until, expires_at, held)
             values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms', now() + $8 * interval '1 s', false)
             on conflict (payer_id, key) do update
                set request = excluded.request, request_id = excluded.request_id, revision = excluded.revision,
                    owner = excluded.owner, leased_until = excluded.leased_until, expires_at = excluded.expires_at,
                    held = false, lost = false, answer = null
              where kept.expires_at <= now()
             returning coalesce((select bytes from app.stored_bytes where account_id = $1), 0) as stored`,
      values: [getUuid(payer), key, request, requestId, revision, owner, CLAIM_LEASE_MS, lifetimeSeconds],
    });
    return rows[0] && Number(rows[0].stored);
  }

  async find({ payer, key }: IdempotencyClaim): Promise<ExistingClaim | undefined> {
    const { rows } = await this.pool.query({
      name: 'answer-find',
      text: `select request, request_id, revision, owner, leased_until > now() as running, held, lost, answer
               from gateway.answers where payer_id = $1 and key = $2`,
      values: [getUuid(payer), key],
    });
    const [row] = rows;
    if (!row) return undefined;
    const { request, request_id: requestId, revision, owner, running, held, lost, answer } = row;
    return {
      payer,
      key,
      request,
      requestId,
      revision: Number(revision),
      owner,
      isRunning: running,
      hasHold: held,
      isLost: lost,
      sealedResponse: answer,
    };
  }

  takeOver(existing: ExistingClaim, { requestId, owner, revision }: IdempotencyClaim): Promise<boolean> {
    const lease = `leased_until = now() + $6 * interval '1 ms'`;
    return this.updateClaim('take-over', existing, {
      sql: `update gateway.answers set owner = $4, request_id = $5, revision = $8, held = false, ${lease}`,
      condition: 'leased_until <= now() and held = $7 and answer is null and not lost',
      values: [owner, requestId, CLAIM_LEASE_MS, existing.hasHold, revision],
    });
  }

  renew(claim: IdempotencyClaim): Promise<boolean> {
    return this.updateClaim('renew', claim, {
      sql: `update gateway.answers set leased_until = now() + $4 * interval '1 ms'`,
      condition: 'not held', // it may arrive after the confirmation, whose lease is longer
      values: [CLAIM_LEASE_MS],
    });
  }

  confirm(claim: IdempotencyClaim): Promise<boolean> {
    return this.updateClaim('confirm', claim, {
      sql: `update gateway.answers set held = true, leased_until = now() + $4 * interval '1 ms'`,
      values: [this.holdLeaseMs],
    });
  }

  end(claim: IdempotencyClaim, outcome: ClaimOutcome, maxBytes = Number.MAX_SAFE_INTEGER): Promise<boolean> {
    switch (outcome) {
      case 'lost':
        return this.updateClaim('lose', claim, { sql: 'update gateway.answers set lost = true' });
      case 'unknown':
        return this.updateClaim('give-up', claim, { sql: 'update gateway.answers set leased_until = now()' });
      case 'delivered':
        return this.updateClaim('deliver', claim, { sql: 'update gateway.answers set expires_at = now()' });
      case 'unpaid':
        return this.updateClaim('forget', claim, { sql: 'delete from gateway.answers' });
      default:
        return this.saveResponse(claim, outcome, maxBytes);
    }
  }

  async open(sealed: Buffer): Promise<Omit<SavedHttpResponse, 'images'> | undefined> {
    const bytes = await decompress(await this.secrets.openBytes(sealed));
    const end = bytes.indexOf('\n');
    const head = JSON.parse(bytes.subarray(0, end).toString());
    return restoreImages({ ...head, body: bytes.subarray(end + 1) }, this.files);
  }

  async removeExpired(): Promise<void> {
    await this.pool.query(`delete from gateway.answers where expires_at <= now() and ${canRemoveSql}`);
  }

  private async saveResponse(
    claim: IdempotencyClaim,
    { body, ...head }: SavedHttpResponse,
    maxBytes: number,
  ): Promise<boolean> {
    const line = Buffer.from(`${JSON.stringify(head)}\n`);
    const sealed = await this.secrets.sealBytes(await compress(Buffer.concat([line, body])));
    const isSaved = await this.updateClaim('keep', claim, {
      // The byte count of the payer is locked, so concurrent requests cannot exceed the limit.
      sql: 'with used as materialized (select app.stored_for_update($1) as bytes) update gateway.answers set answer = $4',
      condition: '(select bytes from used) + octet_length($4::bytea) <= $5',
      values: [sealed, maxBytes],
    });
    if (!isSaved) await this.end(claim, 'lost');
    return isSaved;
  }

  /**
   * Changes a row only for its current owner. Another request may take over the row after the lease ends.
   * @returns whether the row was changed
   */
  private async updateClaim(
    name: string,
    { payer, key, owner }: IdempotencyClaim,
    { sql, condition = 'true', values = [] }: ClaimUpdate,
  ) {
    const { rowCount } = await this.pool.query({
      name: `answer-${name}`,
      text: `${sql} where payer_id = $1 and key = $2 and owner = $3 and ${condition}`,
      values: [getUuid(payer), key, owner, ...values],
    });
    return rowCount === 1;
  }
}

/** Returns the id in the name of the payer's stream. Ids are random, so a challenge never has the id of an account. */
function getUuid(payer: string): string {
  return payer.slice(payer.indexOf('-') + 1);
}
