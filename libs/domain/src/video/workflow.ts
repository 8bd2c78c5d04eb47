/** The next steps of a video job. */
import type { EffectStep, QueryStep, SendStep, Workflow, WorkflowPlan } from '#kernel';
import type { Attempt, Charge } from '../charge.ts';
import { VIDEO } from '../events.ts';
import type { Instant } from '../value-types.ts';
import { canSubmit, getNextSubmissionNumber, type VideoCommand, videoDecider } from './decide.ts';
import type { VideoEndpoint, VideoEvent, VideoFailed, VideoRequested } from './events.ts';
import { DEADLINE_GRACE_MS, getNextFetchAt, getNextPollAt } from './poll-schedule.ts';
import { getSubmittedEndpoint, type Submission, type VideoState } from './state.ts';

/** How long to wait before repeating a step that has had no effect. */
const RETRY_DELAY_MS = 5_000;

type Hold = VideoRequested['data']['hold'];

/** Commands for the payer of the hold. `time_out` is for the stream of the video, after the deadline. */
export type VideoSendCommand =
  | { readonly type: 'keep'; readonly hold: Hold }
  | { readonly type: 'settle'; readonly hold: Hold; readonly charge: Charge }
  | {
      readonly type: 'release';
      readonly hold: Hold;
      readonly failure: VideoFailed['data'];
      readonly attempts: readonly Attempt[];
    }
  | { readonly type: 'time_out' };

interface ProviderJob {
  readonly hold: Hold;
  /** The provider that is called. */
  readonly upstream: string;
  readonly reference: string;
}

export type VideoQuery =
  /** Checks whether the video is ready. After the deadline, a video that is not ready fails. */
  | (ProviderJob & { readonly type: 'state'; readonly isPastDeadline: boolean })
  /** Fetches the video and stores it under the id `result`. */
  | (ProviderJob & { readonly type: 'result'; readonly fetch: number; readonly result: string });

/** Submits the job to a provider. */
export interface VideoSubmitEffect {
  readonly submission: number;
  /** Index in the endpoints of the request, from 0. */
  readonly endpointIndex: number;
  readonly endpoint: VideoEndpoint;
  readonly hold: Hold;
  readonly request: VideoRequested['data']['request'];
}

export type VideoStep = QueryStep<VideoQuery> | SendStep<VideoSendCommand> | EffectStep<VideoSubmitEffect>;

function plan(video: VideoState, now: Instant): WorkflowPlan<VideoStep> {
  const { phase, request } = video;
  if (!request) return { steps: [] };
  const { hold, deadline } = request;
  const isPastDeadline = now >= deadline;
  switch (phase) {
    case 'requested':
      return planSend(isPastDeadline ? { type: 'time_out' } : { type: 'keep', hold }, now);
    case 'held':
      return isPastDeadline ? planSend({ type: 'time_out' }, now) : planSubmission(video, request, now);
    case 'submitting': // before it plans, the runner records an unfinished submission as unknown
      return { steps: [], dueAt: addMilliseconds(now, RETRY_DELAY_MS) };
    case 'unknown':
      return isPastDeadline ? planSend({ type: 'time_out' }, now) : { steps: [], dueAt: deadline };
    case 'submitted':
      return planPoll(video, request, now);
    case 'made':
      return planFetch(video, request, now);
    case 'stored':
      return video.stored ? planSend({ type: 'settle', hold, charge: video.stored.charge }, now) : { steps: [] };
    case 'failed':
      return video.failure
        ? planSend({ type: 'release', hold, failure: video.failure, attempts: listAttempts(video) }, now)
        : { steps: [] };
    case 'none':
    case 'settled':
    case 'released':
      return { steps: [] };
    default:
      return phase satisfies never;
  }
}

function planSend(command: VideoSendCommand, now: Instant): WorkflowPlan<VideoStep> {
  return { steps: [{ step: 'send', command }], dueAt: addMilliseconds(now, RETRY_DELAY_MS) };
}

function planSubmission(
  video: VideoState,
  { request, hold, deadline }: VideoRequested['data'],
  now: Instant,
): WorkflowPlan<VideoStep> {
  if (!canSubmit(video, now)) return { steps: [], dueAt: video.notBefore < deadline ? video.notBefore : deadline };
  const submission = getNextSubmissionNumber(video);
  const effect = { submission, endpointIndex: video.endpoint, endpoint: getSubmittedEndpoint(video), hold, request };
  return {
    steps: [{ step: 'effect', key: toEffectKey(submission), effect }],
    dueAt: addMilliseconds(now, RETRY_DELAY_MS),
  };
}

/**
 * After the deadline, one last check is planned. It is repeated while the provider is unreachable, but only for
 * `DEADLINE_GRACE_MS`.
 */
function planPoll(video: VideoState, request: VideoRequested['data'], now: Instant): WorkflowPlan<VideoStep> {
  const { deadline, result } = request;
  const { accepted } = video.submission as Submission;
  if (!accepted) return { steps: [] };
  if (now >= addMilliseconds(deadline, DEADLINE_GRACE_MS)) return planSend({ type: 'time_out' }, now);
  const { at: due, isDue } = getNextPollAt(accepted, now, result);
  const isPastDeadline = now >= deadline;
  const dueAt = isPastDeadline ? addMilliseconds(now, RETRY_DELAY_MS) : due < deadline ? due : deadline;
  if (!isPastDeadline && !isDue) return { steps: [], dueAt };
  const query = { ...toProviderJob(video, request, accepted.reference), type: 'state', isPastDeadline } as const;
  return { steps: [{ step: 'query', query }], dueAt };
}

function planFetch(video: VideoState, request: VideoRequested['data'], now: Instant): WorkflowPlan<VideoStep> {
  const { result } = request;
  const { accepted } = video.submission as Submission;
  if (!accepted) return { steps: [] };
  const due = getNextFetchAt(video);
  if (now < due) return { steps: [], dueAt: due };
  const query = {
    ...toProviderJob(video, request, accepted.reference),
    type: 'result',
    fetch: video.fetches + 1,
    result,
  } as const;
  return { steps: [{ step: 'query', query }], dueAt: addMilliseconds(now, RETRY_DELAY_MS) };
}

function toProviderJob(video: VideoState, { hold }: VideoRequested['data'], reference: string): ProviderJob {
  return { hold, upstream: getSubmittedEndpoint(video).creditor, reference };
}

/** Returns all attempts, including a submission with an unknown outcome. */
function listAttempts(video: VideoState): readonly Attempt[] {
  const { attempts, failure, submission } = video;
  if (!failure?.open || submission?.accepted) return attempts;
  const { provider, creditor, of } = getSubmittedEndpoint(video);
  const milliseconds = Math.max(0, Date.parse(failure.at) - Date.parse(submission?.startedAt ?? failure.at));
  return [...attempts, { provider, creditor, model: of, outcome: 'unknown', milliseconds }];
}

function addMilliseconds(at: Instant, milliseconds: number): Instant {
  return new Date(Date.parse(at) + milliseconds).toISOString();
}

function toEffectKey(submission: number): string {
  return `submit-${submission}`;
}

function parseEffectKey(key: string): number {
  return Number(key.slice('submit-'.length));
}

export const videoWorkflow: Workflow<VideoCommand, VideoState, VideoEvent, VideoStep> = {
  name: 'videos',
  category: VIDEO,
  decider: videoDecider,
  plan,
  lowPriorityEvents: new Set<VideoEvent['type']>([
    'VideoSubmitted',
    'VideoSubmissionFailed',
    'VideoSettled',
    'VideoReleased',
  ]),
  effects: {
    findStarted({ phase, submission }) {
      if (phase !== 'submitting' || !submission) return undefined;
      return { key: toEffectKey(submission.number), token: submission.token };
    },
    createStartCommand: ({ effect: { submission } }, token, at) => ({
      type: 'BeginSubmission',
      data: { submission, token, at },
    }),
    createEndCommand: (key, outcome, at) => ({
      type: 'EndSubmission',
      data: { submission: parseEffectKey(key), outcome, at },
    }),
  },
};
