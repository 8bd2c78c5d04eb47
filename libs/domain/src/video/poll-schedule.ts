/**
 * When a provider is polled for a video. The times are calculated from stored events and the current time, so a poll
 * without news stores nothing.
 */
import type { Instant } from '../value-types.ts';
import type { Submission, VideoState } from './state.ts';

type AcceptedSubmission = NonNullable<Submission['accepted']>;

const FIRST_POLL_DELAY_MS = 1_000;
const MIN_POLL_INTERVAL_MS = 2_000;
/** The interval is this fraction of the time since the submission. */
const POLL_INTERVAL_FACTOR = 0.5;
const MAX_POLL_INTERVAL_MS = 60_000;
/** If the provider calls a webhook, polls are only needed in case a call is lost. */
const MIN_WEBHOOK_POLL_INTERVAL_MS = 30_000;
const MAX_WEBHOOK_POLL_INTERVAL_MS = 120_000;
/**
 * Each interval is extended by up to this fraction, differently for each video, to spread polls of simultaneous jobs.
 */
const JITTER = 0.25;

const MIN_FETCH_BACKOFF_MS = 1_000;
const MAX_FETCH_BACKOFF_MS = 300_000;

/** How long after the deadline the last poll is repeated while the provider is unreachable. */
export const DEADLINE_GRACE_MS = 15 * 60_000;

/**
 * Returns the time of the next poll after `now`, and whether a poll is due now.
 * @param salt a text that differs from video to video
 */
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

/** Returns the time of the next attempt to fetch the video, with exponential back-off after failures. */
export function getNextFetchAt({ fetches, fetchFailedAt, madeAt = '' }: VideoState): Instant {
  if (fetchFailedAt === undefined) return madeAt;
  const wait = Math.min(MIN_FETCH_BACKOFF_MS * 2 ** (fetches - 1), MAX_FETCH_BACKOFF_MS);
  return toInstant(Date.parse(fetchFailedAt) + wait);
}

function toInstant(milliseconds: number): Instant {
  return new Date(Math.round(milliseconds)).toISOString();
}

/** Hashes a text to a number from 0 to below 1, with FNV-1a. */
function hashToFraction(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
