/** The state of a video job. */
import { throwUnknownEvent } from '#kernel';
import type { Attempt } from '../charge.ts';
import type { Amount, Instant } from '../value-types.ts';
import type {
  VideoEndpoint,
  VideoEvent,
  VideoFailed,
  VideoRequested,
  VideoStored,
  VideoSubmissionBegun,
  VideoSubmissionFailed,
  VideoSubmitted,
} from './events.ts';

/**
 * `requested` → `held` → `submitting` → `submitted` → `made` → `stored` → `settled`, or `failed` → `released`. A job
 * that a provider has definitely not accepted goes back to `held` for another attempt. The phase is `unknown` if the
 * provider may have accepted the job.
 */
export type VideoPhase =
  | 'none'
  | 'requested'
  | 'held'
  | 'submitting'
  | 'unknown'
  | 'submitted'
  | 'made'
  | 'stored'
  | 'settled'
  | 'failed'
  | 'released';

export interface VideoState {
  readonly phase: VideoPhase;
  readonly request: VideoRequested['data'] | undefined;
  /** The last submission. */
  readonly submission: Submission | undefined;
  /** Index of the current endpoint. After a submission that was not accepted, the index of the next one, if any. */
  readonly endpoint: number;
  /** Number of submissions to this endpoint. */
  readonly endpointAttempts: number;
  /** No submission starts before this time. */
  readonly notBefore: Instant;
  readonly attempts: readonly Attempt[];
  /** When the provider reported that the video is ready. */
  readonly madeAt: Instant | undefined;
  /** Number of failed fetches. */
  readonly fetches: number;
  /** Time of the last failed fetch. */
  readonly fetchFailedAt: Instant | undefined;
  readonly stored: VideoStored['data'] | undefined;
  readonly charged: Amount | undefined;
  readonly failure: VideoFailed['data'] | undefined;
  /** What the provider has invoiced of the open cost; undefined until an operator has checked it. */
  readonly closedCost: Amount | undefined;
  /** The highest fencing token under which a submission was started. */
  readonly token: number;
}

export interface Submission {
  readonly number: number;
  readonly token: number;
  readonly startedAt: Instant;
  /** Undefined until it is known that the provider has accepted the job. */
  readonly accepted: Pick<VideoSubmitted['data'], 'reference' | 'vendorId' | 'hooked' | 'at'> | undefined;
}

export const INITIAL_VIDEO: VideoState = {
  phase: 'none',
  request: undefined,
  submission: undefined,
  endpoint: 0,
  endpointAttempts: 0,
  notBefore: '',
  attempts: [],
  madeAt: undefined,
  fetches: 0,
  fetchFailedAt: undefined,
  stored: undefined,
  charged: undefined,
  failure: undefined,
  closedCost: undefined,
  token: 0,
};

export function evolveVideo(state: VideoState, event: VideoEvent): VideoState {
  switch (event.type) {
    case 'VideoRequested':
      return { ...state, phase: 'requested', request: event.data, notBefore: event.data.at };
    case 'VideoHeld':
      return { ...state, phase: 'held' };
    case 'VideoSubmissionBegun':
      return startSubmission(state, event.data);
    case 'VideoSubmitted':
      return acceptSubmission(state, event.data);
    case 'VideoSubmissionFailed':
      return failSubmission(state, event.data);
    case 'VideoMade':
      return { ...state, phase: 'made', madeAt: event.data.at };
    case 'VideoFetchFailed':
      return { ...state, fetches: event.data.fetch, fetchFailedAt: event.data.at };
    case 'VideoStored':
      return { ...state, phase: 'stored', stored: event.data };
    case 'VideoSettled':
      return { ...state, phase: 'settled', charged: event.data.charged };
    case 'VideoFailed':
      return { ...state, phase: 'failed', failure: event.data };
    case 'VideoReleased':
      return { ...state, phase: 'released' };
    case 'VideoCostClosed':
      return { ...state, closedCost: event.data.cost };
    default:
      return throwUnknownEvent(event);
  }
}

function startSubmission(
  state: VideoState,
  { submission, endpoint, token, at }: VideoSubmissionBegun['data'],
): VideoState {
  return {
    ...state,
    phase: 'submitting',
    submission: { number: submission, token, startedAt: at, accepted: undefined },
    endpoint,
    endpointAttempts: endpoint === state.endpoint ? state.endpointAttempts + 1 : 1,
    token,
  };
}

function acceptSubmission(state: VideoState, { reference, vendorId, hooked, at }: VideoSubmitted['data']): VideoState {
  const { submission } = state;
  if (!submission) return state;
  return {
    ...state,
    phase: 'submitted',
    submission: { ...submission, accepted: { reference, vendorId, hooked, at } },
    attempts: [...state.attempts, { ...createAttempt(state, at), vendorId, outcome: 'ok' }],
  };
}

function failSubmission(state: VideoState, { outcome, code, status, at }: VideoSubmissionFailed['data']): VideoState {
  if (outcome === 'unknown') return { ...state, phase: 'unknown' };
  const failed = { ...createAttempt(state, at), outcome: code, ...(status === undefined ? {} : { status }) };
  const next = { ...state, phase: 'held' as const, attempts: [...state.attempts, failed] };
  const { endpoints } = state.request as VideoRequested['data'];
  const hasAnother = state.endpoint + 1 < endpoints.length;
  if (hasAnother) return { ...next, endpoint: state.endpoint + 1, endpointAttempts: 0, notBefore: at };
  return { ...next, notBefore: getRetryAt(at, state.endpointAttempts) };
}

const MIN_BACKOFF_MS = 2_000;

/** The delay before the next submission to the last endpoint is 2 s, then 8 s. */
function getRetryAt(at: Instant, endpointAttempts: number): Instant {
  return new Date(Date.parse(at) + MIN_BACKOFF_MS * 4 ** (endpointAttempts - 1)).toISOString();
}

function createAttempt(state: VideoState, at: Instant): Omit<Attempt, 'outcome'> {
  const { provider, creditor, of } = getSubmittedEndpoint(state);
  const milliseconds = Math.max(0, Date.parse(at) - Date.parse(state.submission?.startedAt ?? at));
  return { provider, creditor, model: of, milliseconds };
}

/**
 * Returns the current endpoint; of an accepted job, the endpoint that accepted it.
 * @throws Error before the video is requested
 */
export function getSubmittedEndpoint({ request, endpoint }: VideoState): VideoEndpoint {
  const match = request?.endpoints[endpoint];
  if (!match) throw new Error('a video has no endpoint');
  return match;
}
