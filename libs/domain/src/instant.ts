const DATE_TIME = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-]\d{2}:\d{2})?)?$/i;
/**
 * Years 0001 to 9999. `Date.toISOString` and PostgreSQL format other years differently, and only these years sort as
 * text.
 */
const COMMON_ERA = /^(?!0000)\d{4}-/;

/**
 * Parses an ISO 8601 date, or date and time, to an instant in UTC. A value without a time zone is read as UTC.
 * @returns undefined for any other value, for a date that does not exist, and outside the years 0001 to 9999
 */
export function parseInstant(value: unknown): string | undefined {
  const [, date, time = '00:00', zone = 'Z'] = (typeof value === 'string' && DATE_TIME.exec(value)) || [];
  const dayStart = new Date(`${date}T00:00Z`);
  const at = new Date(`${date}T${time}${zone}`);
  if (Number.isNaN(at.getTime()) || dayStart.toISOString().slice(0, 10) !== date) return undefined; // 30 February
  const instant = at.toISOString();
  return COMMON_ERA.test(instant) ? instant : undefined;
}
