/**
 * Requests a video: quote → hold → store the request → append `VideoRequested`. The workflow continues from there, in
 * any process.
 */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { type VideoRequested, type VideoState } from '#domain';
import {
  createRootCause,
  money,
  Rejection,
  type Runtime,
  StoreUnavailableError,
  UnknownOutcomeError,
  withAbortTimeout,
} from '#kernel';
import type { BillingEngine, ClientConnection } from '../../billing/billing-engine.ts';
import { type Caller, type Hold, type Payer, toActor } from '../../billing/payer.ts';
import type { Clock } from '../../clock.ts';
import { InvalidRequestError, toUpstreamError, UpstreamError } from '../../errors.ts';
import type { Secrets } from '../../secrets.ts';
import type { Videos } from '../../streams.ts';
import { generateFileId } from '../file-store.ts';
import type { ImageFiles, LoadImageSource, UploadedImage } from '../images/image-files.ts';
import type { VideoBody, VideoQuote, VideoQuoter } from './video-quoter.ts';
import type { VideoRequestStore } from './video-request-store.ts';

const HOUR_MS = 60 * 60_000;
/** A request is stored for at least a day after the deadline of its video. */
const REQUEST_RETENTION_MS = 24 * HOUR_MS;
/** A video is available for at least a day, even if it was fetched three hours after its deadline. */
const RESULT_RETENTION_MS = 27 * HOUR_MS;
/** Time limit for downloading the input image. */
const FETCH_TIMEOUT_MS = 60_000;
const ID_DIGITS = 32;

/** Returns the video id of a request: the same each time, and impossible to guess. */
export function toVideoId(requestId: string, secrets: Secrets): string {
  const hash = Buffer.from(secrets.hashWithOldestKey(`video of request ${requestId}`), 'base64url');
  return `gen_${hash.toString('hex').slice(0, ID_DIGITS)}`;
}

/**
 * Limits how many prompts of an account providers may reject per hour. A rejected prompt costs the caller nothing, but
 * the provider may invoice what it generated before the check.
 */
export abstract class RejectedVideoLimit {
  /** @throws UpstreamError `rate_limited` if too many were rejected in the last hour */
  abstract assertWithinLimit(accountId: string): Promise<void>;
}

export interface RequestVideoDependencies {
  readonly quoter: VideoQuoter;
  readonly billing: BillingEngine;
  readonly rejectedVideoLimit: RejectedVideoLimit;
  readonly images: Pick<ImageFiles, 'prepareSources'>;
  readonly requests: VideoRequestStore;
  readonly videos: Videos;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly runtime: Pick<Runtime, 'startTimer' | 'generateBytes'>;
}

export interface RequestVideoParams {
  readonly requestId: string;
  /** Undefined for a request that is paid for without an account. */
  readonly caller: Caller | undefined;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
  readonly connection: ClientConnection;
}

export class RequestVideo extends Command<{ readonly id: string; readonly video: VideoState }> {
  /** @param uploaded the input image, instead of an `image_url` */
  constructor(
    readonly payer: Payer,
    readonly request: RequestVideoParams,
    readonly body: VideoBody,
    readonly uploaded?: UploadedImage | undefined,
  ) {
    super();
  }
}

@CommandHandler(RequestVideo)
export class RequestVideoHandler implements ICommandHandler<RequestVideo> {
  constructor(private readonly dependencies: RequestVideoDependencies) {}

  async execute({ payer, request, body, uploaded }: RequestVideo) {
    const { requestId, caller, source, connection } = request;
    const quote = await this.dependencies.quoter.quote(body, {
      requestId,
      source,
      payer,
      hasUpload: uploaded !== undefined,
    });
    if (caller) await this.dependencies.rejectedVideoLimit.assertWithinLimit(caller.accountId);
    const sources = await this.dependencies.images.prepareSources(uploaded ?? quote.imageUrl);
    const hold = await this.dependencies.billing.holdForJob(payer, quote.order, connection);
    const data = await this.prepareRequest(quote, { hold, caller, sources }).catch(async (error) => {
      await payer.release(hold, { failure: toUpstreamError(error), attempts: [] });
      throw isExpected(error) ? error : new StoreUnavailableError('the request could not be stored', { cause: error });
    });
    const id = toVideoId(requestId, this.dependencies.secrets);
    const actor = caller ? toActor(caller) : payer.id.replace('-', ':');
    const recorded = this.dependencies.videos.run(
      id,
      { type: 'RequestVideo', data },
      createRootCause(actor, requestId),
    );
    const { state } = await recorded.catch((error) => {
      // If it is unknown whether the event was appended, the hold stays: it expires, or ends with the video. The payer
      // logs the retries of a release, and a hold that it cannot release expires too.
      const isUnrecorded = error instanceof StoreUnavailableError && !(error instanceof UnknownOutcomeError);
      if (isUnrecorded) void payer.release(hold, { failure: toUpstreamError(error), attempts: [] }).catch(() => {});
      throw error; // at once: the release may have to wait for the event store
    });
    return { id, video: state };
  }

  private async prepareRequest(
    { order, endpoints, choices, prompt, orders, deadlineMs }: VideoQuote,
    {
      hold,
      caller,
      sources,
    }: { readonly hold: Hold; readonly caller: Caller | undefined; readonly sources: LoadImageSource },
  ): Promise<VideoRequested['data']> {
    const { requests, clock, runtime } = this.dependencies;
    const { image } = await withAbortTimeout(runtime, FETCH_TIMEOUT_MS, sources);
    const now = clock.nowMs();
    const deadline = now + deadlineMs;
    const { holdId, payer, amount } = hold;
    return {
      ...(caller ?? { accountId: null, keyId: null }),
      query: order.query,
      hold: { holdId, payer, amount: money.toJsonAmount(amount) },
      endpoints,
      terms: choices,
      priceList: order.priceList.version,
      request: await requests.save({ prompt, image, orders }, deadline + REQUEST_RETENTION_MS),
      result: generateFileId(runtime, 'gen', deadline + RESULT_RETENTION_MS),
      deadline: clock.toInstant(deadline),
      at: clock.toInstant(now),
    };
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof UpstreamError || error instanceof InvalidRequestError || error instanceof Rejection;
}
