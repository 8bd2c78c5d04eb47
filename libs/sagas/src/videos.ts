import {
  type Clock,
  type HoldCommandRouter,
  type ProviderRegistry,
  StoredRequestLostError,
  type StoredVideoRequest,
  type Streams,
  toHold,
  toUpstreamError,
  UpstreamError,
  VideoFetchError,
  type VideoProvider,
  type VideoRequestStore,
  type VideoResults,
  type VideoWebhooks,
} from '#application';
import {
  type HoldCommand,
  REQUEST_ERROR_CODES,
  type SubmissionResult,
  VIDEO,
  type VideoCommand,
  type VideoEvent,
  type VideoQuery,
  type VideoRequested,
  type VideoSendCommand,
  type VideoStep,
  type VideoSubmitEffect,
  videoWorkflow,
} from '#domain';
import {
  type Cause,
  type CheckpointStore,
  type EventReader,
  type Lease,
  Rejection,
  type Runtime,
  startWorkflow,
  toStreamName,
  type WorkflowDependencies,
  type WorkflowSchedule,
} from '#kernel';
import { PollRateLimiter } from './poll-rate-limiter.ts';

/** Handing over a picture takes a while; who has not answered by then may have taken it. */
const SUBMIT_MS = 60_000;
const LOOK_MS = 30_000;
/** A vendor's names of things are kept in facts. */
const MOST_REFERENCE = 1_000;
/** Answers of something between us and the vendor, which may have passed the request on. */
const PERHAPS_PASSED_ON: ReadonlySet<number> = new Set([408, 502, 504]);
/** What may be over in a moment. */
const PASSING: ReadonlySet<string> = new Set(['upstream_error', 'upstream_unavailable', 'rate_limited']);

const NO_ORDER = { parameters: {}, wire: {} } as const;
const HOLD_ENDED = { errorCode: 'hold_ended', message: 'The money for the video was not held any more' } as const;

export interface VideoWorkflowDependencies {
  readonly facts: EventReader;
  readonly streams: Pick<Streams, 'videos'>;
  readonly payers: Pick<HoldCommandRouter, 'run'>;
  readonly providers: ProviderRegistry;
  readonly requests: VideoRequestStore;
  readonly results: VideoResults;
  readonly hooks: VideoWebhooks;
  /** Looks at each vendor in a second. */
  readonly looksPerSecond: number;
  readonly due: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/** Has videos made, as long as this process has the turn. */
export function runVideos(ports: VideoWorkflowDependencies, lease: Lease): readonly Promise<void>[] {
  return startWorkflow(videoWorkflow, new VideoSteps(ports, lease.signal).ports(), lease).tasks;
}

type Commands = readonly VideoCommand[];
type PayerWish = Exclude<VideoSendCommand, { type: 'time out' }>;

class VideoSteps {
  private readonly paces = new Map<string, PollRateLimiter>();

  /** @param over ends fetches: they are made again */
  constructor(
    private readonly given: VideoWorkflowDependencies,
    private readonly over: AbortSignal,
  ) {}

  ports(): WorkflowDependencies<VideoCommand, VideoEvent, VideoStep> {
    const { facts, streams, due, checkpoints, clock, runtime } = this.given;
    return {
      ...{ eventReader: facts, runner: streams.videos, schedule: due, checkpoints, runtime },
      send: ({ command }, jobId, cause) => this.send(command, jobId, cause),
      query: (questions) => questions.map(({ query: question, isUrgent: ahead }) => this.ask(question, ahead)),
      // Not with the turn's signal: what is broken off may have been taken.
      perform: ({ effect }, jobId) => this.submit(effect, jobId),
      now: () => clock.now(),
    };
  }

  private async send(wish: VideoSendCommand, jobId: string, cause: Cause): Promise<void> {
    const own = (command: VideoCommand) => this.given.streams.videos.run(jobId, command, cause);
    const at = this.given.clock.now();
    if (wish.type === 'time out') return void (await own({ type: 'TimeOutVideo', data: { at } }));
    const done = await this.tell(wish, jobId, cause);
    if (wish.type === 'settle') await own({ type: 'RecordSettled', data: { at } });
    else if (wish.type === 'release') await own({ type: 'RecordReleased', data: { at } });
    else if (done) await own({ type: 'RecordHeld', data: { at } });
    else await own({ type: 'FailVideo', data: { phase: 'requested', ...HOLD_ENDED, at } });
  }

  /**
   * Tells who pays. A hold that is kept ends by its job alone, so a payer that does not know it (any more) has ended it
   * before, as the job says.
   * @returns false when the hold has ended that should be kept
   */
  private async tell(wish: PayerWish, jobId: string, cause: Cause): Promise<boolean> {
    try {
      await this.given.payers.run(wish.hold.payer, this.commandOf(wish, jobId), cause);
      return true;
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      if (wish.type === 'keep' && error.code === 'hold_resolved') return false;
      if (wish.type !== 'keep' && error.code === 'hold_not_found') return true;
      throw error;
    }
  }

  private commandOf(wish: PayerWish, jobId: string): HoldCommand {
    const { holdId } = wish.hold;
    const at = this.given.clock.now();
    if (wish.type === 'keep') return { type: 'KeepHold', data: { holdId, owner: toStreamName(VIDEO, jobId), at } };
    if (wish.type === 'settle') return { type: 'SettleHold', data: { holdId, charge: wish.charge, at } };
    const { errorCode, message: reason, absorbed } = wish.failure;
    const cost = absorbed ? { absorbed } : {};
    return { type: 'ReleaseHold', data: { holdId, errorCode, reason, attempts: wish.attempts, ...cost, at } };
  }

  private async submit(
    { submission, endpointIndex: nth, hold, endpoint, request }: VideoSubmitEffect,
    jobId: string,
  ): Promise<SubmissionResult> {
    const upstream = endpoint.creditor;
    const opened = await this.opened(request);
    if ('isAccepted' in opened) return opened;
    const { prompt, image, orders } = opened;
    try {
      const maker = this.maker(upstream, hold);
      const hookUrl = maker.parseWebhook && this.given.hooks.createUrl(upstream, { jobId, submission });
      const signal = AbortSignal.timeout(SUBMIT_MS);
      const { parameters, wire } = orders[nth] ?? NO_ORDER;
      const order = {
        model: endpoint.model,
        prompt,
        image,
        parameters,
        wireMapping: wire,
        webhookUrl: hookUrl,
        signal,
      };
      const { reference, vendorId } = await maker.submit(order);
      if (reference.length > MOST_REFERENCE || vendorId.length > MOST_REFERENCE)
        throw new Error('the vendor calls it by a name that is too long');
      return { isAccepted: true, reference, vendorId, hooked: hookUrl !== undefined };
    } catch (error) {
      const failure = toUpstreamError(error);
      if (!isRefused(failure)) {
        this.given.runtime.reportError(`it is not known whether ${upstream} has taken video ${jobId}`, error);
        throw error;
      }
      const { code, status, upstreamCode: word, message: why } = failure;
      const refused = REQUEST_ERROR_CODES.has(code) && status !== 404;
      return {
        isAccepted: false,
        isRejected: refused,
        isRetryable: PASSING.has(code),
        code: word ?? code,
        reason: why,
        status,
      };
    }
  }

  /** Nothing is handed over without it. */
  private async opened(request: VideoRequested['data']['request']): Promise<StoredVideoRequest | SubmissionResult> {
    try {
      return await this.given.requests.load(request);
    } catch (error) {
      const lost = error instanceof StoredRequestLostError;
      this.given.runtime.reportError('the request of a video cannot be read', error);
      const why = 'The request could not be read again';
      return {
        isAccepted: false,
        isRejected: lost,
        isRetryable: !lost,
        code: lost ? 'request_lost' : 'storage_unavailable',
        reason: why,
      };
    }
  }

  private ask(question: VideoQuery, ahead: boolean): Promise<Commands> {
    return question.type === 'state' ? this.state(question, ahead) : this.result(question);
  }

  private async state(
    { upstream, reference, hold, isPastDeadline: isOver }: Extract<VideoQuery, { type: 'state' }>,
    ahead: boolean,
  ): Promise<Commands> {
    const pace = this.paceOf(upstream);
    if (!pace.allows(ahead || isOver)) return [];
    const look = await this.maker(upstream, hold)
      .getStatus(reference, AbortSignal.timeout(LOOK_MS))
      .catch((error: unknown) => {
        if (error instanceof UpstreamError && error.code === 'upstream_unavailable') pace.leaveAlone();
        throw error;
      });
    const at = this.given.clock.now();
    if (look.state === 'made') return [{ type: 'RecordMade', data: { at } }];
    if (look.state === 'pending') return isOver ? [{ type: 'TimeOutVideo', data: { at } }] : [];
    const { code: errorCode, message, invoiced } = look;
    return [{ type: 'FailVideo', data: { phase: 'submitted', errorCode, message, invoiced, at } }];
  }

  private async result({
    upstream,
    reference,
    hold,
    fetch,
    result,
  }: Extract<VideoQuery, { type: 'result' }>): Promise<Commands> {
    const failed = (final: boolean, why: string): Commands => [
      { type: 'RecordFetchFailure', data: { fetch, final, why, at: this.given.clock.now() } },
    ];
    try {
      const look = await this.maker(upstream, hold).getStatus(reference, AbortSignal.timeout(LOOK_MS));
      if (look.state !== 'made') return failed(look.state === 'failed', `Its vendor says now that it is ${look.state}`);
      const stored = await this.given.results.fetchAndStore(upstream, look.file, result, this.over);
      return [{ type: 'RecordStored', data: { ...stored, at: this.given.clock.now() } }];
    } catch (error) {
      if (this.over.aborted) throw error;
      if (error instanceof VideoFetchError) return failed(error.isFinal, error.message);
      if (error instanceof UpstreamError) return failed(false, error.message);
      throw error; // the file store is away: it is not the vendor's fault
    }
  }

  private maker(upstream: string, hold: VideoSubmitEffect['hold']): VideoProvider {
    return this.given.providers.get(toHold(hold), upstream, 'videos');
  }

  private paceOf(upstream: string): PollRateLimiter {
    const known = this.paces.get(upstream);
    if (known) return known;
    const pace = new PollRateLimiter(this.given.looksPerSecond, this.given.clock);
    this.paces.set(upstream, pace);
    return pace;
  }
}

/** Whether it has surely not been taken. */
function isRefused({ status, isUnsent: unsent }: UpstreamError): boolean {
  return unsent || (status !== undefined && status >= 300 && !PERHAPS_PASSED_ON.has(status));
}
