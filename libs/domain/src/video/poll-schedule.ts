/** How often a vendor is asked about a video, as a pure function: nothing is stored for a look that finds nothing. */
import type { Instant } from '../value-types.ts';
import type { Submission, VideoState } from './state.ts';

type AcceptedSubmission = NonNullable<Submission['accepted']>;

const FIRST_POLL_DELAY_MS = 1_000;
const MIN_POLL_INTERVAL_MS = 2_000;
/** Of how long it has been made, this part passes before the next look. */
const POLL_INTERVAL_FACTOR = 0.5;
const MAX_POLL_INTERVAL_MS = 60_000;
/** Where the vendor says itself when it is done, looks are for what it forgets to say. */
const MIN_WEBHOOK_POLL_INTERVAL_MS = 30_000;
const MAX_WEBHOOK_POLL_INTERVAL_MS = 120_000;
/** A wait is longer by up to this part, for each video another: those that began together do not stay together. */
const JITTER = 0.25;

const MIN_FETCH_BACKOFF_MS = 1_000;
const MAX_FETCH_BACKOFF_MS = 300_000;

/** For how long after its deadline a vendor that cannot be asked is asked once more. */
export const DEADLINE_GRACE_MS = 15 * 60_000;

/** When a video is to be looked at again, and whether it may be now. @param salt differs from video to video */
export function getNextPollAt(
  { at, hooked }: AcceptedSubmission,
  now: Instant,
  salt: string,
): { at: Instant; isDue: boolean } {
  const [startMs, nowMs] = [Date.parse(at), Date.parse(now)];
  const first = startMs + FIRST_POLL_DELAY_MS;
  if (nowMs < first) return { at: toInstant(first), isDue: false };
  const [min, max] = hooked
    ? [MIN_WEBHOOK_POLL_INTERVAL_MS, MAX_WEBHOOK_POLL_INTERVAL_MS]
    : [MIN_POLL_INTERVAL_MS, MAX_POLL_INTERVAL_MS];
  const wait = Math.min(Math.max((nowMs - startMs) * POLL_INTERVAL_FACTOR, min), max);
  return { at: toInstant(nowMs + wait * (1 + JITTER * hashToFraction(`${salt} ${nowMs}`))), isDue: true };
}

/** When what was made is fetched (again): each time later by more. */
export function getNextFetchAt({ fetches, fetchFailedAt, madeAt = '' }: VideoState): Instant {
  if (fetchFailedAt === undefined) return madeAt;
  const wait = Math.min(MIN_FETCH_BACKOFF_MS * 2 ** (fetches - 1), MAX_FETCH_BACKOFF_MS);
  return toInstant(Date.parse(fetchFailedAt) + wait);
}

function toInstant(milliseconds: number): Instant {
  return new Date(Math.round(milliseconds)).toISOString();
}

/** From 0 up to 1, the same for the same text: FNV-1a. */
function hashToFraction(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
