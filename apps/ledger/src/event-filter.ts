import { parseInstant } from '#domain';
import { StartError } from '#foundation';
import { START_POSITION, type StoredEvent } from '#kernel';

/** Returns whether an event is included in the accounting data as of a position or a booking time. */
export type EventFilter = (event: Pick<StoredEvent, 'position' | 'recordedAt'>) => boolean;

/** The events of which a command lists something. */
export interface EventPeriod {
  /** A booking time. */
  readonly since: string | undefined;
  /** A position or a booking time. */
  readonly until: string | undefined;
}

/**
 * Parses the option `--until`.
 * @param until a position or a booking time; undefined includes all events
 * @throws StartError if it is neither
 */
export function parseUntilFilter(until: string | undefined): EventFilter {
  if (until === undefined) return () => true;
  if (/^\d+$/.test(until)) {
    const position = BigInt(until);
    return (event) => event.position <= position;
  }
  const instant = parseInstant(until);
  if (instant === undefined) throw new StartError('--until must be a position or an ISO 8601 time.');
  return (event) => event.recordedAt <= instant;
}

/**
 * Parses the option `--since`.
 * @param since a booking time; undefined includes all events
 * @throws StartError if it is not a time
 */
export function parseSinceFilter(since: string | undefined): EventFilter {
  if (since === undefined) return () => true;
  const instant = parseInstant(since);
  if (instant === undefined) throw new StartError('--since must be an ISO 8601 time.');
  return (event) => event.recordedAt >= instant;
}

/** Counts the included events and records the position of the last one. */
export class ReplayExtent {
  private eventCount = 0;
  private last = START_POSITION;

  add({ position }: StoredEvent): void {
    this.eventCount++;
    this.last = position;
  }

  toString(): string {
    return `As of ${this.eventCount === 0 ? 'the beginning' : `position ${this.last}`}: ${this.eventCount} events`;
  }
}

/** Formats a line of a table: a left-aligned name and right-aligned values. */
export function formatColumns(name: string, ...values: readonly string[]): string {
  return (name.padEnd(40) + values.map((value) => value.padStart(24)).join('')).trimEnd();
}
