import { MAX_LINK_LIFETIME_MS, type MediaLinks, parseFileId } from '#application';
import type { VideoRequested, VideoState } from '#domain';
import { money, toUsdJsonNumber } from '#kernel';

const HOUR_MS = 3_600_000;
/** After how many seconds a client should poll again; the value of `retry-after`. */
export const POLL_INTERVAL_SECONDS = '5';

interface LinkContext {
  readonly links: MediaLinks;
  /** Unix milliseconds. */
  readonly now: number;
}

type VideoRequestData = VideoRequested['data'];

/** Returns the response to a request for a video, from stored data only: a repeated request gets the same response. */
export function toSubmittedVideoJson(id: string, request: VideoRequestData, links: MediaLinks) {
  const until = Date.parse(request.at) + MAX_LINK_LIFETIME_MS;
  return {
    ...toVideoHeader(id, request),
    status: 'pending',
    estimated_cost: toUsdJsonNumber(money.parseJsonAmount(request.hold.amount)),
    status_url: links.createStatusUrl(id, until),
  };
}

/** Returns the status of a video, which is `pending` until the hold has been settled or released. */
export function toVideoStatusJson(
  id: string,
  request: VideoRequestData,
  { phase, stored, charged, failure }: VideoState,
  links: LinkContext,
) {
  const head = toVideoHeader(id, request);
  if (phase === 'settled' && stored && charged !== undefined) {
    const file = toFileJson(request, stored.mediaType, links);
    return { ...head, status: 'completed', ...file, cost: toUsdJsonNumber(money.parseJsonAmount(charged)) };
  }
  if (phase === 'released' && failure)
    return { ...head, status: 'failed', error: failure.message, error_code: failure.errorCode };
  return { ...head, status: 'pending' };
}

function toVideoHeader(id: string, { query, at }: VideoRequestData) {
  return { id, model: query.model, created: Math.floor(Date.parse(at) / 1_000) };
}

/**
 * Returns the signed URL of the file. The URL expires no later than the file.
 * @returns `{}` if the file has expired or its id is invalid
 */
function toFileJson({ result }: VideoRequestData, content_type: string, { links, now }: LinkContext) {
  const end = (parseFileId(result)?.hour ?? 0) * HOUR_MS;
  if (now >= end) return {};
  return { data: { url: links.createFileUrl(result, 0, Math.min(now + MAX_LINK_LIFETIME_MS, end)), content_type } };
}
