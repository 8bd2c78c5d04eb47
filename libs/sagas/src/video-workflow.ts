import {
  type Clock,
  type HoldCommandRouter,
  isCertainRejection,
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
  withAbortTimeout,
} from '#kernel';
import { PollRateLimiter } from './poll-rate-limiter.ts';

/** Submitting an image takes a while. After a timeout it is unknown whether the provider accepted the job. */
const SUBMIT_TIMEOUT_MS = 60_000;
const POLL_TIMEOUT_MS = 30_000;
/** Maximum length of the ids that a provider returns, because they are stored in events. */
const MAX_REFERENCE_LENGTH = 1_000;
/** Failures that may be temporary. */
const RETRYABLE_CODES: ReadonlySet<string> = new Set(['upstream_error', 'upstream_unavailable', 'rate_limited']);

const NO_ORDER = { parameters: {}, wire: {} } as const;
const HOLD_ENDED = { errorCode: 'hold_ended', message: 'The money for the video was no longer held' } as const;

export interface VideoWorkflowDependencies {
  readonly eventReader: EventReader;
  readonly streams: Pick<Streams, 'videos'>;
  readonly payers: Pick<HoldCommandRouter, 'run'>;
  readonly providers: ProviderRegistry;
  readonly requests: VideoRequestStore;
  readonly results: VideoResults;
  readonly webhooks: VideoWebhooks;
  /** Maximum routine status polls per second of each provider, on average. */
  readonly pollsPerSecond: number;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/** Submits video jobs to providers, stores the results and ends the holds, until the lease ends. */
export function runVideoWorkflow(dependencies: VideoWorkflowDependencies, lease: Lease): readonly Promise<void>[] {
  return startWorkflow(videoWorkflow, new VideoSteps(dependencies, lease.signal).createWorkflowDependencies(), lease)
    .tasks;
}

type Commands = readonly VideoCommand[];
type PayerInstruction = Exclude<VideoSendCommand, { type: 'time_out' }>;

class VideoSteps {
  private readonly rateLimiters = new Map<string, PollRateLimiter>();

  /** @param leaseSignal aborts downloads of results when the lease ends; the next holder of the lease repeats them */
  constructor(
    private readonly dependencies: VideoWorkflowDependencies,
    private readonly leaseSignal: AbortSignal,
  ) {}

  createWorkflowDependencies(): WorkflowDependencies<VideoCommand, VideoEvent, VideoStep> {
    const { eventReader, streams, schedule, checkpoints, clock, runtime } = this.dependencies;
    return {
      eventReader,
      runner: streams.videos,
      schedule,
      checkpoints,
      runtime,
      send: ({ command }, jobId, cause) => this.send(command, jobId, cause),
      query: (queries) => queries.map(({ query, isUrgent }) => this.runQuery(query, isUrgent)),
      // Without the lease's signal: the provider may have accepted a submission that is aborted.
      perform: ({ effect }, jobId) => this.submit(effect, jobId),
      now: () => clock.now(),
    };
  }

  private async send(instruction: VideoSendCommand, jobId: string, cause: Cause): Promise<void> {
    const runCommand = (command: VideoCommand) => this.dependencies.streams.videos.run(jobId, command, cause);
    const at = this.dependencies.clock.now();
    if (instruction.type === 'time_out') return void (await runCommand({ type: 'TimeOutVideo', data: { at } }));
    const done = await this.instructPayer(instruction, jobId, cause);
    if (instruction.type === 'settle') await runCommand({ type: 'RecordSettled', data: { at } });
    else if (instruction.type === 'release') await runCommand({ type: 'RecordReleased', data: { at } });
    else if (done) await runCommand({ type: 'RecordHeld', data: { at } });
    else await runCommand({ type: 'FailVideo', data: { phase: 'requested', ...HOLD_ENDED, at } });
  }

  /**
   * Sends a hold command to the payer. Only the job ends a hold that was transferred to it. So if the payer no longer
   * knows such a hold, an earlier run of the same command has ended it.
   * @returns false if the hold had ended before it could be transferred to the job
   */
  private async instructPayer(instruction: PayerInstruction, jobId: string, cause: Cause): Promise<boolean> {
    try {
      await this.dependencies.payers.run(instruction.hold.payer, this.toHoldCommand(instruction, jobId), cause);
      return true;
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      if (instruction.type === 'keep' && error.code === 'hold_resolved') return false;
      if (instruction.type !== 'keep' && error.code === 'hold_not_found') return true;
      throw error;
    }
  }

  private toHoldCommand(instruction: PayerInstruction, jobId: string): HoldCommand {
    const { holdId } = instruction.hold;
    const at = this.dependencies.clock.now();
    if (instruction.type === 'keep')
      return { type: 'KeepHold', data: { holdId, owner: toStreamName(VIDEO, jobId), at } };
    if (instruction.type === 'settle') return { type: 'SettleHold', data: { holdId, charge: instruction.charge, at } };
    const { errorCode, message: reason, absorbed } = instruction.failure;
    const cost = absorbed ? { absorbed } : {};
    return { type: 'ReleaseHold', data: { holdId, errorCode, reason, attempts: instruction.attempts, ...cost, at } };
  }

  private async submit(
    { submission, endpointIndex, hold, endpoint, request }: VideoSubmitEffect,
    jobId: string,
  ): Promise<SubmissionResult> {
    const upstream = endpoint.creditor;
    const storedRequest = await this.openRequest(request);
    if ('isAccepted' in storedRequest) return storedRequest;
    const { prompt, image, orders } = storedRequest;
    try {
      const provider = this.getProvider(upstream, hold);
      const hookUrl = provider.parseWebhook && this.dependencies.webhooks.createUrl(upstream, { jobId, submission });
      const { parameters, wire } = orders[endpointIndex] ?? NO_ORDER;
      const order = {
        model: endpoint.model,
        prompt,
        image,
        parameters,
        wireMapping: wire,
        webhookUrl: hookUrl,
      };
      const { reference, vendorId } = await withAbortTimeout(this.dependencies.runtime, SUBMIT_TIMEOUT_MS, (signal) =>
        provider.submit({ ...order, signal }),
      );
      if (reference.length > MAX_REFERENCE_LENGTH || vendorId.length > MAX_REFERENCE_LENGTH)
        throw new Error('the provider returned a job id that is too long');
      return { isAccepted: true, reference, vendorId, hooked: hookUrl !== undefined };
    } catch (error) {
      const failure = toUpstreamError(error);
      if (!isCertainRejection(failure)) {
        this.dependencies.runtime.reportError(`unknown whether ${upstream} accepted video job ${jobId}`, error);
        throw error;
      }
      const { code, status, upstreamCode, message: reason } = failure;
      const isRejected = REQUEST_ERROR_CODES.has(code) && status !== 404;
      return {
        isAccepted: false,
        isRejected,
        isRetryable: RETRYABLE_CODES.has(code),
        code: upstreamCode ?? code,
        reason,
        status,
      };
    }
  }

  /** @returns the stored request; if it cannot be loaded, the result of the submission, which fails without a call */
  private async openRequest(
    request: VideoRequested['data']['request'],
  ): Promise<StoredVideoRequest | SubmissionResult> {
    try {
      return await this.dependencies.requests.load(request);
    } catch (error) {
      const lost = error instanceof StoredRequestLostError;
      this.dependencies.runtime.reportError('the stored request of a video could not be loaded', error);
      const reason = 'The stored request could not be loaded';
      return {
        isAccepted: false,
        isRejected: lost,
        isRetryable: !lost,
        code: lost ? 'request_lost' : 'storage_unavailable',
        reason,
      };
    }
  }

  private runQuery(query: VideoQuery, isUrgent: boolean): Promise<Commands> {
    return query.type === 'state' ? this.pollState(query, isUrgent) : this.fetchResult(query);
  }

  private async pollState(
    { upstream, reference, hold, isPastDeadline }: Extract<VideoQuery, { type: 'state' }>,
    isUrgent: boolean,
  ): Promise<Commands> {
    const rateLimiter = this.getRateLimiter(upstream);
    if (!rateLimiter.tryAcquire(isUrgent || isPastDeadline)) return [];
    const provider = this.getProvider(upstream, hold);
    const status = await this.fetchStatus(provider, reference).catch((error: unknown) => {
      if (error instanceof UpstreamError && error.code === 'upstream_unavailable') rateLimiter.backOff();
      throw error;
    });
    const at = this.dependencies.clock.now();
    if (status.state === 'made') return [{ type: 'RecordMade', data: { at } }];
    if (status.state === 'pending') return isPastDeadline ? [{ type: 'TimeOutVideo', data: { at } }] : [];
    const { code: errorCode, message, invoiced } = status;
    return [{ type: 'FailVideo', data: { phase: 'submitted', errorCode, message, invoiced, at } }];
  }

  private async fetchResult({
    upstream,
    reference,
    hold,
    fetch,
    result,
  }: Extract<VideoQuery, { type: 'result' }>): Promise<Commands> {
    const toFetchFailureCommands = (final: boolean, reason: string): Commands => [
      { type: 'RecordFetchFailure', data: { fetch, final, why: reason, at: this.dependencies.clock.now() } },
    ];
    try {
      const status = await this.fetchStatus(this.getProvider(upstream, hold), reference);
      if (status.state !== 'made')
        return toFetchFailureCommands(status.state === 'failed', `The provider now reports the state ${status.state}`);
      const stored = await this.dependencies.results.fetchAndStore(upstream, status.file, result, this.leaseSignal);
      return [{ type: 'RecordStored', data: { ...stored, at: this.dependencies.clock.now() } }];
    } catch (error) {
      if (this.leaseSignal.aborted) throw error;
      if (error instanceof VideoFetchError) return toFetchFailureCommands(error.isFinal, error.message);
      if (error instanceof UpstreamError) return toFetchFailureCommands(false, error.message);
      throw error; // the file store is unavailable, which is not a failure of the provider
    }
  }

  private fetchStatus(provider: VideoProvider, reference: string) {
    return withAbortTimeout(this.dependencies.runtime, POLL_TIMEOUT_MS, (signal) =>
      provider.getStatus(reference, signal),
    );
  }

  private getProvider(upstream: string, hold: VideoSubmitEffect['hold']): VideoProvider {
    return this.dependencies.providers.get(toHold(hold), upstream, 'videos');
  }

  private getRateLimiter(upstream: string): PollRateLimiter {
    const existing = this.rateLimiters.get(upstream);
    if (existing) return existing;
    const rateLimiter = new PollRateLimiter(this.dependencies.pollsPerSecond, this.dependencies.clock);
    this.rateLimiters.set(upstream, rateLimiter);
    return rateLimiter;
  }
}
