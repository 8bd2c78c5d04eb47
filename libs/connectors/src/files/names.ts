/** What stores share: what may be called what, and which hour a file's time is over. */
import { parseFileId } from '#application';

const HOUR_MS = 3_600_000;
/** `2026-11-22T13`: people find it, and names are in the order of time. */
const HOUR_NAME = /^\d{4}-\d\d-\d\dT\d\d$/;
const MEDIA_TYPE = /^[a-z]+\/[a-z0-9.+-]{1,64}$/;
const MAX_FILES = 1_000;

/** The name of the hour at which the files of an id are deleted; undefined: it is no id. */
export function toHourName(id: string): string | undefined {
  const read = parseFileId(id);
  return read && formatHour(read.hour);
}

export function formatHour(hour: number): string {
  return new Date(hour * HOUR_MS).toISOString().slice(0, 'YYYY-MM-DDTHH'.length);
}

export function isHourName(name: string): boolean {
  return HOUR_NAME.test(name);
}

/** Whether it is the name of an hour that has begun at `now`. */
export function isHourExpired(hourName: string, now: number): boolean {
  return isHourName(hourName) && Date.parse(`${hourName}:00:00Z`) <= now;
}

export function isFileNumber(n: number): boolean {
  return Number.isInteger(n) && n >= 0 && n < MAX_FILES;
}

/** @throws Error when nothing may be kept under such a name */
export function resolveHourName(id: string, n: number, mediaType: string): string {
  const hour = toHourName(id);
  if (hour === undefined || !isFileNumber(n) || !MEDIA_TYPE.test(mediaType))
    throw new Error(`no file can be kept as ${id}/${n} of the type ${mediaType}`);
  return hour;
}
