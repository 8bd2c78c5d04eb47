import type { FastifyReply } from 'fastify';
import type pg from 'pg';
import type { Clock } from '#application';
import { ACCOUNT, AUTO_TOPUP, REFUSALS, refusalsOf, TOPUP } from '#domain';
import { type FactReader, START, streamName } from '#kernel';
import {
  type AutoTopupView,
  type KeyView,
  Progress,
  readAutoTopup,
  readKey,
  readKeys,
  readTopup,
  type TopupView,
} from '#projections';
import { BooksBehind, BooksIncomplete } from './errors.ts';

/** How long an answer waits for the read model it is read from; after that it shows what there is, and a header says so. */
const WAIT_MS = 2_000;

const BEHIND = 'x-books-behind';

/** A stream, and where it ends. */
type Ending = readonly [stream: string, position: bigint];

/** Reads that see what was written: a read model is asked only once it has applied what is to be seen. */
export class BooksReader {
  private readonly progress: Progress;

  constructor(
    readonly pool: pg.Pool,
    private readonly store: FactReader,
    private readonly clock: Clock,
  ) {
    this.progress = new Progress(pool);
  }

  /**
   * Waits until read models show a fact at `position`, so that the next reader sees it, on any replica.
   * @returns false when they do not show it in time
   */
  show(position: bigint, ...projections: string[]): Promise<boolean> {
    return this.progress.reached(projections, position, WAIT_MS);
  }

  /**
   * A top-up, with everything that has happened to it so far; undefined when there is none. Where the read model does not
   * show all of that in time, the answer says in a header that it may be older.
   * @throws BooksBehind when the read model does not know it yet
   */
  async topup(topupId: string, reply: FastifyReply): Promise<TopupView | undefined> {
    const head = await this.store.head(streamName(TOPUP, topupId));
    if (!head) return undefined;
    await this.follow([[streamName(TOPUP, topupId), head.position]], reply, 'topups');
    const topup = await readTopup(this.pool, topupId, this.clock.now());
    if (!topup) throw new BooksBehind();
    return topup;
  }

  /** The automatic top-up of an account; undefined where no wallet was ever connected. */
  async autoTopup(accountId: string, reply: FastifyReply): Promise<AutoTopupView | undefined> {
    const stream = streamName(AUTO_TOPUP, accountId);
    const head = await this.store.head(stream);
    if (head) await this.follow([[stream, head.position]], reply, 'autotopups');
    return readAutoTopup(this.pool, accountId);
  }

  /** All keys of an account, revoked ones too. */
  async keys(accountId: string, reply: FastifyReply): Promise<readonly KeyView[]> {
    await this.showAccount(accountId, reply, 'keys');
    return readKeys(this.pool, accountId, this.clock.now());
  }

  /**
   * A key of an account; undefined when it has no such key.
   * @throws BooksBehind when the read model may not know it yet
   */
  async key(accountId: string, keyId: string, reply: FastifyReply): Promise<KeyView | undefined> {
    const current = await this.showAccount(accountId, reply, 'keys');
    const key = await readKey(this.pool, accountId, keyId, this.clock.now());
    if (!key && !current) throw new BooksBehind();
    return key;
  }

  /** Whether an account exists: by its facts, so that a late read model refuses nothing. */
  async knows(accountId: string): Promise<boolean> {
    return (await this.store.head(streamName(ACCOUNT, accountId))) !== undefined;
  }

  /**
   * Waits until read models show everything that has happened to an account so far, whichever replica wrote it. Where they
   * do not in time, the answer says in a header that it may be older.
   * @returns whether they show it
   */
  async showAccount(accountId: string, reply: FastifyReply, ...projections: string[]): Promise<boolean> {
    const stream = streamName(ACCOUNT, accountId);
    const head = await this.store.head(stream);
    return head === undefined || this.follow([[stream, head.position]], reply, ...projections);
  }

  /** The same for the query history, which also has what was refused today. */
  async showHistory(accountId: string, reply: FastifyReply): Promise<void> {
    const refusals = streamName(REFUSALS, refusalsOf(accountId, this.clock.now()));
    const heads = await Promise.all(
      [streamName(ACCOUNT, accountId), refusals].map(async (stream) => {
        const head = await this.store.head(stream);
        return head ? [[stream, head.position] as const] : [];
      }),
    );
    if (heads.flat().length > 0) await this.follow(heads.flat(), reply, 'queries');
  }

  /** @param heads of the streams that are to be shown. @throws BooksIncomplete */
  private async follow(heads: readonly Ending[], reply: FastifyReply, ...projections: string[]): Promise<boolean> {
    const last = heads.reduce((most, [, position]) => (position > most ? position : most), START);
    const shown = await this.show(last, ...projections);
    const streams = heads.map(([stream]) => stream);
    if (await this.progress.skips(projections, streams)) throw new BooksIncomplete();
    if (!shown) reply.header(BEHIND, 'true');
    return shown;
  }
}
