import type { FastifyReply } from 'fastify';
import type pg from 'pg';
import type { Clock } from '#application';
import { ACCOUNT, AUTO_TOPUP, REFUSED_REQUESTS, TOPUP, toRefusedRequestsStreamId } from '#domain';
import { type EventReader, NO_STREAM, START_POSITION, toStreamName } from '#kernel';
import {
  type AutoTopupView,
  FreshnessCheck,
  findKeyOwner,
  foldAutoTopup,
  foldTopup,
  type KeyOwner,
  type KeyView,
  type ProjectedEvent,
  ProjectionProgress,
  type ProjectorWakeup,
  readAutoTopup,
  readKey,
  readKeys,
  type TopupView,
} from '#projections';
import { ReadModelIncompleteError, ReadModelLaggingError } from '../errors/errors.ts';

/** How long an answer waits for the read model it is read from; after that it shows what there is, and a header says so. */
export const READ_MODEL_WAIT_MS = 2_000;

const LAGGING_HEADER = 'x-books-behind';

/** A stream, and where it ends. */
type StreamEnd = readonly [stream: string, position: bigint];

/** Reads that see what was written: a read model is asked only once it has applied what is to be seen. */
export class ReadModelReader {
  private readonly progress: ProjectionProgress;
  readonly freshnessCheck: FreshnessCheck;

  constructor(
    readonly pool: pg.Pool,
    private readonly store: EventReader,
    private readonly clock: Clock,
    wakeup?: ProjectorWakeup,
  ) {
    this.progress = new ProjectionProgress(pool, wakeup);
    this.freshnessCheck = new FreshnessCheck(store, this.progress);
  }

  /**
   * Waits until read models show a fact at `position`, so that the next reader sees it, on any replica.
   * @returns false when they do not show it in time
   */
  waitForPosition(position: bigint, ...projections: string[]): Promise<boolean> {
    return this.progress.waitUntilApplied(projections, position, READ_MODEL_WAIT_MS);
  }

  /**
   * The owner of a key, by what the keyed hash of its secret may be; undefined when there is no such key. Only for one that is
   * not found it is asked whether the read model shows all there is.
   * @param timeoutMs how long a read model that is behind is waited for
   * @throws StoreUnavailableError; ReadModelLaggingError, ReadModelIncompleteError when the read model may lack it: who shows a key that exists is never told that it does not
   */
  async findKeyOwner(hashes: readonly string[], timeoutMs = READ_MODEL_WAIT_MS): Promise<KeyOwner | undefined> {
    const existing = await findKeyOwner(this.pool, hashes);
    if (existing) return existing;
    const isCurrent = await this.freshnessCheck.waitUntilCurrent(['keys'], timeoutMs);
    const owner = await findKeyOwner(this.pool, hashes);
    if (owner) return owner;
    if (!isCurrent) throw new ReadModelLaggingError();
    if (await this.progress.hasSkippedType('keys', 'KeyCreated')) throw new ReadModelIncompleteError();
    return undefined;
  }

  /** A top-up, with everything that has happened to it so far; undefined when there is none. */
  async findTopup(topupId: string): Promise<TopupView | undefined> {
    return foldTopup(await this.readEvents(toStreamName(TOPUP, topupId)), this.clock.now());
  }

  /** The automatic top-up of an account, with everything that has happened to it; undefined where no wallet was ever connected. */
  async findAutoTopup(accountId: string): Promise<AutoTopupView | undefined> {
    const stream = toStreamName(AUTO_TOPUP, accountId);
    const head = await this.store.readHead(stream);
    if (!head) return undefined;
    if (await this.waitForStreams([[stream, head.position]], 'autotopups')) return readAutoTopup(this.pool, accountId);
    return foldAutoTopup(await this.readEvents(stream));
  }

  /** All keys of an account, revoked ones too. */
  async listKeys(accountId: string, reply: FastifyReply): Promise<readonly KeyView[]> {
    await this.waitForAccount(accountId, reply, 'keys');
    return readKeys(this.pool, accountId, this.clock.now());
  }

  /**
   * A key of an account; undefined when it has no such key.
   * @throws ReadModelLaggingError when the read model may not know it yet
   */
  async findApiKey(accountId: string, keyId: string, reply: FastifyReply): Promise<KeyView | undefined> {
    const isCurrent = await this.waitForAccount(accountId, reply, 'keys');
    const read = () => readKey(this.pool, accountId, keyId, this.clock.now());
    const key = await read();
    if (key) return key;
    if (!isCurrent || !(await this.freshnessCheck.waitUntilCurrent(['keys'], READ_MODEL_WAIT_MS)))
      throw new ReadModelLaggingError();
    return read();
  }

  /** Whether an account exists: by its facts, so that a late read model refuses nothing. */
  async hasAccount(accountId: string): Promise<boolean> {
    return (await this.store.readHead(toStreamName(ACCOUNT, accountId))) !== undefined;
  }

  /**
   * Waits until read models show everything that has happened to an account so far, whichever replica wrote it. Where they
   * do not in time, the answer says in a header that it may be older.
   * @returns whether they show it
   */
  async waitForAccount(accountId: string, reply: FastifyReply, ...projections: string[]): Promise<boolean> {
    const stream = toStreamName(ACCOUNT, accountId);
    const head = await this.store.readHead(stream);
    return head === undefined || this.waitAndReportLag([[stream, head.position]], reply, ...projections);
  }

  /** The same for the query history, which also has what was refused today. */
  async waitForHistory(accountId: string, reply: FastifyReply): Promise<void> {
    const refusedRequestsStream = toStreamName(
      REFUSED_REQUESTS,
      toRefusedRequestsStreamId(accountId, this.clock.now()),
    );
    const heads = await Promise.all(
      [toStreamName(ACCOUNT, accountId), refusedRequestsStream].map(async (stream) => {
        const head = await this.store.readHead(stream);
        return head ? [[stream, head.position] as const] : [];
      }),
    );
    if (heads.flat().length > 0) await this.waitAndReportLag(heads.flat(), reply, 'queries');
  }

  private async waitAndReportLag(
    heads: readonly StreamEnd[],
    reply: FastifyReply,
    ...projections: string[]
  ): Promise<boolean> {
    const isCurrent = await this.waitForStreams(heads, ...projections);
    if (!isCurrent) reply.header(LAGGING_HEADER, 'true');
    return isCurrent;
  }

  /** @param heads of the streams that are to be shown. @throws ReadModelIncompleteError */
  private async waitForStreams(heads: readonly StreamEnd[], ...projections: string[]): Promise<boolean> {
    const last = heads.reduce((max, [, position]) => (position > max ? position : max), START_POSITION);
    const isCurrent = await this.waitForPosition(last, ...projections);
    const streams = heads.map(([stream]) => stream);
    if (await this.progress.hasSkippedStream(projections, streams)) throw new ReadModelIncompleteError();
    return isCurrent;
  }

  private async readEvents(stream: string): Promise<readonly ProjectedEvent[]> {
    const events: ProjectedEvent[] = [];
    for await (const page of this.store.read(stream, NO_STREAM)) events.push(...(page as readonly ProjectedEvent[]));
    return events;
  }
}
