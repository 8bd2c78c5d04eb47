/**
 * Formats videos. A job has two ids. `gen_…` names it in our own form, whose words OpenRouter's clients also
 * understand. `video_…` names it in OpenAI's form, which has other words for the status and an object as the error: the
 * helpers of OpenAI's clients that poll a video stop at any other word.
 * https://developers.openai.com/api/reference/resources/videos
 * https://openrouter.ai/docs/guides/overview/multimodal/video-generation
 */
import { MAX_LINK_LIFETIME_MS, type MediaLinks, parseFileId } from '#application';
import type { VideoPhase, VideoRequested, VideoState } from '#domain';
import { money, toUsdJsonNumber } from '#kernel';

const HOUR_MS = 3_600_000;
/** After how many seconds a client should poll again. */
const POLL_INTERVAL_SECONDS = 5;
/** For clients of either kind: OpenAI's read only the second header. */
export const POLL_HEADERS: Readonly<Record<string, string>> = {
  'retry-after': String(POLL_INTERVAL_SECONDS),
  'openai-poll-after-ms': String(POLL_INTERVAL_SECONDS * 1_000),
};

const ID = /^(gen|video)(_[0-9a-f]{32})$/;
/** Lines of a video whose model has no choice of a resolution. */
const DEFAULT_LINES = 720;

/** A job, and the form in which it is returned. */
export interface VideoReference {
  readonly jobId: string;
  readonly isOpenAi: boolean;
}

interface LinkContext {
  readonly links: MediaLinks;
  /** Unix milliseconds. */
  readonly now: number;
}

type VideoRequestData = VideoRequested['data'];

/** @returns undefined if the id is invalid */
export function parseVideoId(id: string): VideoReference | undefined {
  const [, prefix, digits] = ID.exec(id) ?? [];
  return prefix === undefined ? undefined : { jobId: `gen${digits}`, isOpenAi: prefix === 'video' };
}

function toVideoId({ jobId, isOpenAi }: VideoReference): string {
  return isOpenAi ? jobId.replace('gen_', 'video_') : jobId;
}

/** Returns the response to a request for a video, from stored data only: a repeated request gets the same response. */
export function toSubmittedVideoJson(video: VideoReference, request: VideoRequestData, links: MediaLinks) {
  const head = toVideoHeader(video, request, links);
  return {
    ...head,
    status: video.isOpenAi ? 'queued' : 'pending',
    ...(video.isOpenAi ? { error: null } : {}),
    estimated_cost: toUsdJsonNumber(money.parseJsonAmount(request.hold.amount)),
    status_url: head.polling_url,
  };
}

/** Whether the hold of the video has been settled or released. */
export function hasEnded({ phase }: Pick<VideoState, 'phase'>): boolean {
  return phase === 'settled' || phase === 'released';
}

/** Returns the status of a video, which has not ended until its hold has been settled or released. */
export function toVideoStatusJson(
  video: VideoReference,
  request: VideoRequestData,
  { phase, stored, charged, failure }: VideoState,
  context: LinkContext,
) {
  const head = toVideoHeader(video, request, context.links);
  const noError = video.isOpenAi ? { error: null } : {};
  if (phase === 'settled' && stored && charged !== undefined) {
    const cost = toUsdJsonNumber(money.parseJsonAmount(charged));
    const file = toFileJson(request, stored.mediaType, context);
    return {
      ...head,
      status: 'completed',
      progress: 100,
      completed_at: toUnixSeconds(stored.at),
      expires_at: getFileEndMs(request) / 1_000,
      ...noError,
      ...file,
      cost,
      usage: { cost },
    };
  }
  if (phase === 'released' && failure) {
    const { message, errorCode: code } = failure;
    return { ...head, status: 'failed', error: video.isOpenAi ? { code, message } : message, error_code: code };
  }
  return { ...head, status: video.isOpenAi ? toOpenAiStatus(phase) : 'pending', ...noError };
}

const QUEUED_PHASES: ReadonlySet<VideoPhase> = new Set(['none', 'requested', 'held', 'submitting', 'unknown']);

function toOpenAiStatus(phase: VideoPhase): 'queued' | 'in_progress' {
  return QUEUED_PHASES.has(phase) ? 'queued' : 'in_progress';
}

/**
 * Returns the fields that do not depend on the state, and the values that fields have before the video is completed.
 */
function toVideoHeader(video: VideoReference, request: VideoRequestData, links: MediaLinks) {
  const { query, terms, at } = request;
  const id = toVideoId(video);
  const created = toUnixSeconds(at);
  return {
    id,
    object: 'video',
    model: query.model,
    created,
    created_at: created,
    completed_at: null,
    expires_at: null,
    progress: 0,
    seconds: String(terms.duration ?? 0),
    size: toPixelSize(terms),
    prompt: null,
    remixed_from_video_id: null,
    polling_url: links.createStatusUrl(id, Date.parse(at) + MAX_LINK_LIFETIME_MS),
  };
}

/** Returns the nominal size, such as `1280x720` for the ratio `16:9` and the quality `720p`. */
function toPixelSize({ size = '16:9', quality, resolution = quality }: VideoRequestData['terms']): string {
  const [width = 16, height = 9] = String(size).split(':').map(Number);
  const lines = Number.parseInt(String(resolution), 10) || DEFAULT_LINES;
  const scale = lines / Math.min(width, height);
  return `${Math.round(width * scale)}x${Math.round(height * scale)}`;
}

function toUnixSeconds(instant: string): number {
  return Math.floor(Date.parse(instant) / 1_000);
}

/** Returns when the file of a video is deleted, in Unix milliseconds; 0 if the id of the file is invalid. */
export function getFileEndMs({ result }: VideoRequestData): number {
  return (parseFileId(result)?.hour ?? 0) * HOUR_MS;
}

/**
 * Returns the signed URL of the file, also as OpenRouter's clients read it. The URL expires no later than the file.
 * @returns `{}` if the file has expired or its id is invalid
 */
function toFileJson(request: VideoRequestData, content_type: string, { links, now }: LinkContext) {
  const end = getFileEndMs(request);
  if (now >= end) return {};
  const url = links.createFileUrl(request.result, 0, Math.min(now + MAX_LINK_LIFETIME_MS, end));
  return { data: { url, content_type }, unsigned_urls: [url] };
}
