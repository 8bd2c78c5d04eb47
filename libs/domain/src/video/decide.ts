/**
 * The decisions of a video job, from its request to its charge. The job is submitted to another provider only if the
 * previous one has definitely not accepted it. While that is unknown, the job is not submitted again. Only this stream
 * decides how the hold of the payer ends, so commands to the payer can be repeated at any time.
 */
import { assertFencingToken, type Decider, type EffectOutcome, money, type PicoUsd } from '#kernel';
import { type CallUsage, type Charge, type ChargeItem, type Tariff, toCharge, toChargeItem } from '../charge.ts';
import { reject } from '../rejections.ts';
import { parsePriceJson } from '../tariff.ts';
import type { Instant } from '../value-types.ts';
import type {
  OpenCost,
  ProviderInvoiceExpectation,
  VideoCostClosed,
  VideoEvent,
  VideoFailed,
  VideoFetchFailed,
  VideoRequested,
  VideoStored,
  VideoSubmissionFailed,
  VideoSubmitted,
} from './events.ts';
import { evolveVideo, getSubmittedEndpoint, INITIAL_VIDEO, type VideoPhase, type VideoState } from './state.ts';

/** Maximum number of submissions to the last endpoint while it is temporarily unavailable. */
const MAX_ENDPOINT_ATTEMPTS = 3;
/** From this number of fetches on, an error that is probably permanent fails the video. */
const MAX_FINAL_FETCHES = 3;
/** Maximum number of fetches while the video is unreachable. */
const MAX_FETCHES = 20;
/** Maximum length in characters of a provider's message. */
const MAX_MESSAGE_LENGTH = 500;

// commands ----------------------------------------------------------------------------------------------------------

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Readonly<Data> & { readonly at: Instant };
}

export type VideoCommand =
  | Command<'RequestVideo', VideoRequested['data']>
  | Command<'RecordHeld', object>
  | Command<'BeginSubmission', { submission: number; token: number }>
  | Command<'EndSubmission', { submission: number; outcome: EffectOutcome }>
  | Command<'RecordMade', object>
  | Command<'RecordFetchFailure', VideoFetchFailed['data']>
  | Command<'RecordStored', Pick<VideoStored['data'], 'mediaType' | 'size'>>
  | Command<'RecordSettled', object>
  | Command<'FailVideo', VideoFailure>
  | Command<'TimeOutVideo', object>
  | Command<'RecordReleased', object>
  | Command<'CloseVideoCost', { cost: PicoUsd }>;

interface VideoFailure {
  /** The phase in which the failure was found. The command has no effect if the video is in another phase by now. */
  readonly phase: VideoPhase;
  readonly errorCode: string;
  readonly message: string;
  /** Whether the provider invoices the failed job anyway. */
  readonly invoiced?: ProviderInvoiceExpectation;
}

/**
 * The response of a provider to a submission. If it is unknown whether the job was accepted, an error is thrown
 * instead.
 */
export type SubmissionResult =
  | ({ readonly isAccepted: true } & Pick<VideoSubmitted['data'], 'reference' | 'vendorId' | 'hooked'>)
  | {
      readonly isAccepted: false;
      /** No provider can accept the request: it is invalid, or the stored request is lost. */
      readonly isRejected: boolean;
      /** The provider may accept the job later. */
      readonly isRetryable: boolean;
      readonly code: string;
      readonly reason: string;
      readonly status?: number | undefined;
    };

// decide ------------------------------------------------------------------------------------------------------------

function decide(command: VideoCommand, video: VideoState): readonly VideoEvent[] {
  if (command.type === 'RequestVideo')
    return video.phase === 'none' ? [{ type: 'VideoRequested', data: command.data }] : [];
  if (video.phase === 'none') return reject('video_not_found', 'Video not found');
  switch (command.type) {
    case 'RecordHeld':
      return video.phase === 'requested' ? [{ type: 'VideoHeld', data: command.data }] : [];
    case 'BeginSubmission':
      return beginSubmission(command.data, video);
    case 'EndSubmission':
      return endSubmission(command.data, video);
    case 'RecordMade':
      return video.phase === 'submitted' ? [{ type: 'VideoMade', data: command.data }] : [];
    case 'RecordFetchFailure':
      return recordFetchFailure(command.data, video);
    case 'RecordStored':
      return recordStored(command.data, video);
    case 'RecordSettled':
      return recordSettled(command.data, video);
    case 'FailVideo':
      return fail(command.data, video);
    case 'TimeOutVideo':
      return timeOut(command.data, video);
    case 'RecordReleased':
      return video.phase === 'failed' ? [{ type: 'VideoReleased', data: command.data }] : [];
    case 'CloseVideoCost':
      return closeCost(command.data, video);
    default:
      return command satisfies never;
  }
}

type DataOf<Type extends VideoCommand['type']> = Extract<VideoCommand, { type: Type }>['data'];

function beginSubmission(
  { submission, token, at }: DataOf<'BeginSubmission'>,
  video: VideoState,
): readonly VideoEvent[] {
  assertFencingToken(video.token, token);
  if (submission !== getNextSubmissionNumber(video) || !canSubmit(video, at)) return [];
  return [{ type: 'VideoSubmissionBegun', data: { submission, endpoint: video.endpoint, token, at } }];
}

export function getNextSubmissionNumber({ submission }: VideoState): number {
  return (submission?.number ?? 0) + 1;
}

/** Whether the job may be submitted to a provider now. */
export function canSubmit({ phase, notBefore, request }: VideoState, now: Instant): boolean {
  return phase === 'held' && now >= notBefore && request !== undefined && now < request.deadline;
}

/** The outcome can arrive late or by a webhook, and then replaces an unknown outcome. */
function endSubmission({ submission, outcome, at }: DataOf<'EndSubmission'>, video: VideoState): readonly VideoEvent[] {
  const isOpen = video.phase === 'submitting' || video.phase === 'unknown';
  if (!isOpen || video.submission?.number !== submission) return [];
  if (!outcome.isKnown) {
    const data = { submission, outcome: 'unknown', code: 'unknown', why: truncateMessage(outcome.reason), at } as const;
    return video.phase === 'submitting' ? [{ type: 'VideoSubmissionFailed', data }] : [];
  }
  const result = outcome.result as SubmissionResult;
  if (result.isAccepted) {
    const { reference, vendorId, hooked } = result;
    return [{ type: 'VideoSubmitted', data: { submission, reference, vendorId, hooked, at } }];
  }
  return recordNotAccepted({ submission, ...result, at }, video);
}

function recordNotAccepted(
  result: Extract<SubmissionResult, { isAccepted: false }> & { readonly submission: number; readonly at: Instant },
  video: VideoState,
): readonly VideoEvent[] {
  const { submission, isRejected, isRetryable, code, status, at } = result;
  const reason = truncateMessage(result.reason);
  const outcome = isRejected ? 'refused' : 'unavailable';
  const statusField = status === undefined ? {} : { status };
  const failed: VideoSubmissionFailed = {
    type: 'VideoSubmissionFailed',
    data: { submission, outcome, code, why: reason, ...statusField, at },
  };
  const hasAnother = video.endpoint + 1 < (video.request?.endpoints.length ?? 0);
  const canContinue = !isRejected && (hasAnother || (isRetryable && video.endpointAttempts < MAX_ENDPOINT_ATTEMPTS));
  return canContinue ? [failed] : [failed, createVideoFailed({ errorCode: code, message: reason, at })];
}

function recordFetchFailure(data: VideoFetchFailed['data'], video: VideoState): readonly VideoEvent[] {
  if (video.phase !== 'made' || data.fetch !== video.fetches + 1) return [];
  const { fetch, final, at } = data;
  const failed: VideoFetchFailed = { type: 'VideoFetchFailed', data: { ...data, why: truncateMessage(data.why) } };
  if (fetch < (final ? MAX_FINAL_FETCHES : MAX_FETCHES)) return [failed];
  const errorCode = 'result_lost';
  const message = 'The video was made, but could not be had from its vendor';
  return [failed, createVideoFailed({ errorCode, message, absorbed: createAbsorbedCharge(errorCode, video), at })];
}

function recordStored({ mediaType, size, at }: DataOf<'RecordStored'>, video: VideoState): readonly VideoEvent[] {
  if (video.phase !== 'made') return [];
  const charge = createCharge({}, video);
  return [{ type: 'VideoStored', data: { mediaType, size, charge, at } }];
}

/**
 * Calculates the charged amount by the same rule as the payer: the price, at most the held amount. The payer is not
 * queried, because it may no longer know how the hold ended.
 */
function recordSettled({ at }: DataOf<'RecordSettled'>, video: VideoState): readonly VideoEvent[] {
  const { phase, stored, request } = video;
  if (phase !== 'stored' || !stored || !request) return [];
  const charged = money.min(money.parseJsonAmount(stored.charge.price), money.parseJsonAmount(request.hold.amount));
  return [{ type: 'VideoSettled', data: { charged: money.toJsonAmount(charged), at } }];
}

/** Fails a video that is requested, held or submitted. In any other phase, a failure report has no effect. */
function fail({ phase, invoiced, ...failure }: DataOf<'FailVideo'>, video: VideoState): readonly VideoEvent[] {
  const isOpen = phase === 'requested' || phase === 'held' || phase === 'submitted';
  if (!isOpen || phase !== video.phase) return [];
  return [
    createVideoFailed({
      ...failure,
      message: truncateMessage(failure.message),
      ...calculateFailureCost(phase === 'submitted' ? invoiced : 'no', failure, video),
    }),
  ];
}

function calculateFailureCost(
  invoiced: ProviderInvoiceExpectation = 'no',
  { errorCode }: { readonly errorCode: string },
  video: VideoState,
): Pick<VideoFailed['data'], 'absorbed' | 'open'> {
  if (invoiced === 'no') return {};
  return invoiced === 'yes' ? { absorbed: createAbsorbedCharge(errorCode, video) } : { open: calculateOpenCost(video) };
}

function timeOut({ at }: DataOf<'TimeOutVideo'>, video: VideoState): readonly VideoEvent[] {
  const { phase, request } = video;
  if (!request || at < request.deadline) return [];
  const errorCode = 'timeout';
  const message = 'The video was not ready in time';
  if (phase === 'requested' || phase === 'held') return [createVideoFailed({ errorCode, message, at })];
  if (phase !== 'unknown' && phase !== 'submitted') return [];
  return [createVideoFailed({ errorCode, message, open: calculateOpenCost(video), at })];
}

function closeCost({ cost, at }: DataOf<'CloseVideoCost'>, { failure, closedCost }: VideoState): readonly VideoEvent[] {
  const { open } = failure ?? {};
  if (!open) return reject('no_open_cost', 'This video has no open cost');
  const closed = money.toJsonAmount(cost);
  if (closedCost === closed) return [];
  if (closedCost !== undefined) return reject('no_open_cost', 'The cost was already closed with a different amount');
  const { of, provider, creditor, vendorId } = open;
  const idField = vendorId === undefined ? {} : { vendorId };
  const data: VideoCostClosed['data'] = { of, provider, creditor, ...idField, cost: closed, at };
  return [{ type: 'VideoCostClosed', data }];
}

// amounts -----------------------------------------------------------------------------------------------------------

/** Returns the charge for the ordered usage at the prices of the quote. */
function createCharge(details: Pick<CallUsage, 'absorbed'> & Pick<Charge, 'errorCode'>, video: VideoState): Charge {
  const { request, attempts } = video;
  const { absorbed: absorbedReason, errorCode } = details;
  const failed = errorCode === undefined ? {} : { errorCode };
  return toCharge([createItem(absorbedReason === undefined ? {} : { absorbed: absorbedReason }, video)], {
    priceList: request?.priceList ?? '',
    attempts,
    ...failed,
  });
}

function createAbsorbedCharge(errorCode: string, video: VideoState): Charge {
  return createCharge({ absorbed: errorCode, errorCode }, video);
}

function createItem(details: Pick<CallUsage, 'absorbed'>, video: VideoState): ChargeItem {
  const { usage, prices, of, provider, creditor } = getSubmittedEndpoint(video);
  const tariff: Tariff = { of, provider, creditor, prices: prices.map(parsePriceJson) };
  const { vendorId } = video.submission?.accepted ?? {};
  const terms = video.request?.terms ?? {};
  const idField = vendorId === undefined ? {} : { vendorId };
  return toChargeItem(tariff, { usage, estimated: false, ...idField, terms, ...details });
}

function calculateOpenCost(video: VideoState): OpenCost {
  const { of, provider, creditor, vendorId, cost } = createItem({}, video);
  return { of: of as string, provider, creditor, ...(vendorId === undefined ? {} : { vendorId }), most: cost };
}

function createVideoFailed(data: VideoFailed['data']): VideoFailed {
  return { type: 'VideoFailed', data };
}

function truncateMessage(text: string): string {
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}

export const videoDecider: Decider<VideoCommand, VideoState, VideoEvent> = {
  getInitialState: () => INITIAL_VIDEO,
  evolve: evolveVideo,
  decide,
};
