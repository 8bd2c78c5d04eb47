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
  type KeyPage,
  type KeyPageFilter,
  type KeyView,
  type ProjectedEvent,
  ProjectionProgress,
  type ProjectorWakeup,
  readAutoTopup,
  readKey,
  readKeys,
  readVideoPage,
  type TopupView,
  type VideoPage,
  type VideoPageFilter,
} from '#projections';
import { ReadModelIncompleteError, ReadModelLaggingError } from '../errors/errors.ts';

/**
 * How long a response waits for the read model that it needs. After that the response has the data that is available,
 * and a header reports that it may be outdated. If the requested object may be missing, the response is 503 instead.
 */
export const READ_MODEL_WAIT_MS = 2_000;

const LAGGING_HEADER = 'x-books-behind';

/** A stream and the position of its last event. */
type StreamEnd = readonly [stream: string, position: bigint];

/**
 * Reads that include earlier writes. They wait until a read model has applied the events that must be visible, for at
 * most `READ_MODEL_WAIT_MS`, or read the events themselves.
 */
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
   * Waits until read models have applied the event at `position`, so that later reads on any replica include it.
   * @returns false on timeout
   */
  waitForPosition(position: bigint, ...projections: string[]): Promise<boolean> {
    return this.progress.waitUntilApplied(projections, position, READ_MODEL_WAIT_MS);
  }

  /**
   * Finds the owner of a key by the possible hashes of its secret; undefined if the key does not exist. Only a missing
   * key requires the check that the read model is current.
   * @param timeoutMs how long to wait for a lagging read model
   * @throws StoreUnavailableError; ReadModelLaggingError, ReadModelIncompleteError if the read model may lack the key:
   * an existing key must never be reported as missing
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

  /** Returns the state of a top-up after all its events so far; undefined if it does not exist. */
  async findTopup(topupId: string): Promise<TopupView | undefined> {
    return foldTopup(await this.readEvents(toStreamName(TOPUP, topupId)), this.clock.now());
  }

  /**
   * Returns the automatic top-up of an account after all its events so far; undefined if no wallet was ever connected.
   * @throws ReadModelIncompleteError if the read model skipped an event of this automatic top-up
   */
  async findAutoTopup(accountId: string): Promise<AutoTopupView | undefined> {
    const stream = toStreamName(AUTO_TOPUP, accountId);
    const head = await this.store.readHead(stream);
    if (!head) return undefined;
    if (await this.waitForStreams([[stream, head.position]], 'autotopups')) return readAutoTopup(this.pool, accountId);
    return foldAutoTopup(await this.readEvents(stream));
  }

  /** Returns a page of the keys of an account. Waits and throws like `waitForAccount`. */
  async listKeys(accountId: string, filter: KeyPageFilter, reply: FastifyReply): Promise<KeyPage> {
    await this.waitForAccount(accountId, reply, 'keys');
    return readKeys(this.pool, accountId, filter, this.clock.now());
  }

  /**
   * Returns a key of an account; undefined if the account has no such key.
   * @throws ReadModelLaggingError if the read model may not have the key yet; ReadModelIncompleteError like
   * `waitForAccount`
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

  /**
   * Returns a page of the videos of an account; undefined if the account has no video `after`. On timeout a response
   * header reports that new videos may be missing.
   * @throws ReadModelIncompleteError if the read model skipped a video
   */
  async listVideos(accountId: string, filter: VideoPageFilter, reply: FastifyReply): Promise<VideoPage | undefined> {
    if (!(await this.freshnessCheck.waitUntilCurrent(['videos'], READ_MODEL_WAIT_MS)))
      reply.header(LAGGING_HEADER, 'true');
    if (await this.progress.hasSkippedType('videos', 'VideoRequested')) throw new ReadModelIncompleteError();
    return readVideoPage(this.pool, accountId, filter);
  }

  /** Whether an account exists. Reads its stream, so that a lagging read model rejects no account. */
  async hasAccount(accountId: string): Promise<boolean> {
    return (await this.store.readHead(toStreamName(ACCOUNT, accountId))) !== undefined;
  }

  /**
   * Waits until read models show every event of an account so far, whichever replica wrote it. On timeout a response
   * header reports that the data may be outdated.
   * @returns false on timeout
   * @throws ReadModelIncompleteError if one of the read models skipped an event of the account
   */
  async waitForAccount(accountId: string, reply: FastifyReply, ...projections: string[]): Promise<boolean> {
    const stream = toStreamName(ACCOUNT, accountId);
    const head = await this.store.readHead(stream);
    return head === undefined || this.waitAndReportLag([[stream, head.position]], reply, ...projections);
  }

  /**
   * Waits like `waitForAccount` for the query history, including the requests that were rejected today for lack of
   * money.
   */
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

  /**
   * @param heads ends of the streams that must be visible
   * @returns false on timeout
   * @throws ReadModelIncompleteError if one of the read models skipped an event of these streams
   */
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
