import type { FastifyReply } from 'fastify';
import type pg from 'pg';
import { ACCOUNT, TOPUP } from '#domain';
import { type FactReader, streamName } from '#kernel';
import { Progress, readTopup, type TopupView } from '#projections';
import { BooksBehind } from './errors.ts';

/** How long an answer waits for the read model it is read from; after that it shows what there is, and a header says so. */
const WAIT_MS = 2_000;

const BEHIND = 'x-books-behind';

/** Reads that see what was written: a read model is asked only once it has applied what is to be seen. */
export class BooksReader {
  private readonly progress: Progress;

  constructor(
    readonly pool: pg.Pool,
    private readonly store: FactReader,
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
   * A top-up as its facts are now; undefined when there is none.
   * @throws BooksBehind when the read model does not show them in time
   */
  async topup(topupId: string, now: string): Promise<TopupView | undefined> {
    const head = await this.store.head(streamName(TOPUP, topupId));
    if (!head) return undefined;
    if (!(await this.progress.reached(['topups'], head.position, WAIT_MS))) throw new BooksBehind();
    return readTopup(this.pool, topupId, now);
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
    const head = await this.store.head(streamName(ACCOUNT, accountId));
    const shown = head === undefined || (await this.show(head.position, ...projections));
    if (!shown) reply.header(BEHIND, 'true');
    return shown;
  }
}
