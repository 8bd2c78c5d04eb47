/** What is to be done for a video. */
import type { EffectStep, QueryStep, SendStep, Workflow, WorkflowPlan } from '#kernel';
import type { Attempt, Charge } from '../charge.ts';
import { VIDEO } from '../events.ts';
import type { Instant } from '../value-types.ts';
import { canSubmit, getNextSubmissionNumber, type VideoCommand, videoDecider } from './decide.ts';
import type { VideoEndpoint, VideoEvent, VideoFailed, VideoRequested } from './events.ts';
import { getNextFetchAt, getNextPollAt, OVERTIME_MS } from './poll-schedule.ts';
import { getSubmittedEndpoint, type Submission, type VideoState } from './state.ts';

/** How soon what was sent is sent again, where nothing has come of it. */
const AGAIN_MS = 5_000;

type Hold = VideoRequested['data']['hold'];

/** What is sent to the payer, whom the hold names, or, when its time is over, to the own stream. */
export type VideoSendCommand =
  | { readonly of: 'keep'; readonly hold: Hold }
  | { readonly of: 'settle'; readonly hold: Hold; readonly charge: Charge }
  | {
      readonly of: 'release';
      readonly hold: Hold;
      readonly failure: VideoFailed['data'];
      readonly attempts: readonly Attempt[];
    }
  | { readonly of: 'time out' };

interface AtVendor {
  readonly hold: Hold;
  /** The slug of the vendor. */
  readonly upstream: string;
  readonly reference: string;
}

export type VideoQuery =
  /** Is it done? Once its time is over it fails where it is not. */
  | (AtVendor & { readonly of: 'state'; readonly isOver: boolean })
  /** Fetches what was made, and keeps it under this id. */
  | (AtVendor & { readonly of: 'result'; readonly fetch: number; readonly result: string });

/** A vendor is handed the video. */
export interface VideoSubmitEffect {
  readonly submission: number;
  /** Which of the endpoints, from 0. */
  readonly nth: number;
  readonly endpoint: VideoEndpoint;
  readonly hold: Hold;
  readonly request: VideoRequested['data']['request'];
}

export type VideoStep = QueryStep<VideoQuery> | SendStep<VideoSendCommand> | EffectStep<VideoSubmitEffect>;

function next(video: VideoState, now: Instant): WorkflowPlan<VideoStep> {
  const { phase, request } = video;
  if (!request) return { steps: [] };
  const { hold, deadline } = request;
  const isOver = now >= deadline;
  switch (phase) {
    case 'requested':
      return sending(isOver ? { of: 'time out' } : { of: 'keep', hold }, now);
    case 'held':
      return isOver ? sending({ of: 'time out' }, now) : handingOver(video, request, now);
    case 'submitting': // by this process, at this moment
      return { steps: [], dueAt: later(now, AGAIN_MS) };
    case 'unknown':
      return isOver ? sending({ of: 'time out' }, now) : { steps: [], dueAt: deadline };
    case 'submitted':
      return looking(video, request, now);
    case 'made':
      return fetching(video, request, now);
    case 'stored':
      return video.stored ? sending({ of: 'settle', hold, charge: video.stored.charge }, now) : { steps: [] };
    case 'failed':
      return video.failure
        ? sending({ of: 'release', hold, failure: video.failure, attempts: attemptsOf(video) }, now)
        : { steps: [] };
    case 'none':
    case 'settled':
    case 'released':
      return { steps: [] };
    default:
      return phase satisfies never;
  }
}

function sending(command: VideoSendCommand, now: Instant): WorkflowPlan<VideoStep> {
  return { steps: [{ step: 'send', command }], dueAt: later(now, AGAIN_MS) };
}

function handingOver(
  video: VideoState,
  { request, hold, deadline }: VideoRequested['data'],
  now: Instant,
): WorkflowPlan<VideoStep> {
  if (!canSubmit(video, now)) return { steps: [], dueAt: video.notBefore < deadline ? video.notBefore : deadline };
  const submission = getNextSubmissionNumber(video);
  const effect = { submission, nth: video.endpoint, endpoint: getSubmittedEndpoint(video), hold, request };
  return { steps: [{ step: 'do', key: keyOf(submission), effect }], dueAt: later(now, AGAIN_MS) };
}

/** After its time is over it is looked at once more, for as long as its vendor cannot be asked, but not for ever. */
function looking(video: VideoState, request: VideoRequested['data'], now: Instant): WorkflowPlan<VideoStep> {
  const { deadline, result } = request;
  const { taken } = video.submission as Submission;
  if (!taken) return { steps: [] };
  if (now >= later(deadline, OVERTIME_MS)) return sending({ of: 'time out' }, now);
  const { at: due, isDue } = getNextPollAt(taken, now, result);
  const isOver = now >= deadline;
  const dueAt = isOver ? later(now, AGAIN_MS) : due < deadline ? due : deadline;
  if (!isOver && !isDue) return { steps: [], dueAt };
  const question = { ...atVendor(video, request, taken.reference), of: 'state', isOver } as const;
  return { steps: [{ step: 'ask', query: question }], dueAt };
}

function fetching(video: VideoState, request: VideoRequested['data'], now: Instant): WorkflowPlan<VideoStep> {
  const { result } = request;
  const { taken } = video.submission as Submission;
  if (!taken) return { steps: [] };
  const due = getNextFetchAt(video);
  if (now < due) return { steps: [], dueAt: due };
  const question = {
    ...atVendor(video, request, taken.reference),
    of: 'result',
    fetch: video.fetches + 1,
    result,
  } as const;
  return { steps: [{ step: 'ask', query: question }], dueAt: later(now, AGAIN_MS) };
}

function atVendor(video: VideoState, { hold }: VideoRequested['data'], reference: string): AtVendor {
  return { hold, upstream: getSubmittedEndpoint(video).creditor, reference };
}

/** Also the one of which nobody knows what became of it. */
function attemptsOf(video: VideoState): readonly Attempt[] {
  const { attempts, failure, submission } = video;
  if (!failure?.open || submission?.taken) return attempts;
  const { provider, creditor, of } = getSubmittedEndpoint(video);
  const milliseconds = Math.max(0, Date.parse(failure.at) - Date.parse(submission?.begunAt ?? failure.at));
  return [...attempts, { provider, creditor, model: of, outcome: 'unknown', milliseconds }];
}

function later(at: Instant, milliseconds: number): Instant {
  return new Date(Date.parse(at) + milliseconds).toISOString();
}

function keyOf(submission: number): string {
  return `submit-${submission}`;
}

function submissionOf(key: string): number {
  return Number(key.slice('submit-'.length));
}

export const videoWorkflow: Workflow<VideoCommand, VideoState, VideoEvent, VideoStep> = {
  name: 'videos',
  category: VIDEO,
  decider: videoDecider,
  plan: next,
  lowPriorityEvents: new Set<VideoEvent['type']>([
    'VideoSubmitted',
    'VideoSubmissionFailed',
    'VideoSettled',
    'VideoReleased',
  ]),
  effects: {
    findStarted({ phase, submission }) {
      if (phase !== 'submitting' || !submission) return undefined;
      return { key: keyOf(submission.number), token: submission.token };
    },
    createStartCommand: ({ effect: { submission } }, token, at) => ({
      type: 'BeginSubmission',
      data: { submission, token, at },
    }),
    createEndCommand: (key, outcome, at) => ({
      type: 'EndSubmission',
      data: { submission: submissionOf(key), outcome, at },
    }),
  },
};
