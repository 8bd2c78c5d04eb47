/** Names that all file stores share, and the hour at which files expire. */
import { parseFileId } from '#application';

const HOUR_MS = 3_600_000;
/** For example `2026-11-22T13`: readable, and sorted by time. */
const HOUR_NAME = /^\d{4}-\d\d-\d\dT\d\d$/;
const MEDIA_TYPE = /^[a-z]+\/[a-z0-9.+-]{1,64}$/;
const MAX_FILES = 1_000;

/** Returns the name of the hour at whose start the files of an id expire. @returns undefined if the id is invalid */
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

/** Whether this is the name of an hour that has started by `now` (Unix milliseconds). */
export function isHourExpired(hourName: string, now: number): boolean {
  return isHourName(hourName) && Date.parse(`${hourName}:00:00Z`) <= now;
}

export function isFileNumber(n: number): boolean {
  return Number.isInteger(n) && n >= 0 && n < MAX_FILES;
}

/** Like `toHourName`, for a file that is to be stored. @throws Error if its id, number or media type is invalid */
export function resolveHourName(id: string, n: number, mediaType: string): string {
  const hour = toHourName(id);
  if (hour === undefined || !isFileNumber(n) || !MEDIA_TYPE.test(mediaType))
    throw new Error(`invalid file name ${id}/${n} or media type ${mediaType}`);
  return hour;
}
