/** How often a vendor is asked about a video, as a pure function: nothing is stored for a look that finds nothing. */
import type { Instant } from '../value-types.ts';
import type { Submission, VideoState } from './state.ts';

type Taken = NonNullable<Submission['taken']>;

const FIRST_LOOK_MS = 1_000;
const LEAST_MS = 2_000;
/** Of how long it has been made, this part passes before the next look. */
const PART = 0.5;
const LONGEST_MS = 60_000;
/** Where the vendor says itself when it is done, looks are for what it forgets to say. */
const FIRST_HOOKED_MS = 30_000;
const LONGEST_HOOKED_MS = 120_000;
/** A wait is longer by up to this part, for each video another: those that began together do not stay together. */
const JITTER = 0.25;

const FIRST_FETCH_WAIT_MS = 1_000;
const LONGEST_FETCH_WAIT_MS = 300_000;

/** For how long after its deadline a vendor that cannot be asked is asked once more. */
export const OVERTIME_MS = 15 * 60_000;

/** When a video is to be looked at again, and whether it may be now. @param salt differs from video to video */
export function getNextPollAt({ at, hooked }: Taken, now: Instant, salt: string): { at: Instant; isDue: boolean } {
  const [begun, present] = [Date.parse(at), Date.parse(now)];
  const first = begun + FIRST_LOOK_MS;
  if (present < first) return { at: instant(first), isDue: false };
  const [least, most] = hooked ? [FIRST_HOOKED_MS, LONGEST_HOOKED_MS] : [LEAST_MS, LONGEST_MS];
  const wait = Math.min(Math.max((present - begun) * PART, least), most);
  return { at: instant(present + wait * (1 + JITTER * chance(`${salt} ${present}`))), isDue: true };
}

/** When what was made is fetched (again): each time later by more. */
export function getNextFetchAt({ fetches, fetchedAt, madeAt = '' }: VideoState): Instant {
  if (fetchedAt === undefined) return madeAt;
  const wait = Math.min(FIRST_FETCH_WAIT_MS * 2 ** (fetches - 1), LONGEST_FETCH_WAIT_MS);
  return instant(Date.parse(fetchedAt) + wait);
}

function instant(milliseconds: number): Instant {
  return new Date(Math.round(milliseconds)).toISOString();
}

/** From 0 up to 1, the same for the same text: FNV-1a. */
function chance(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
