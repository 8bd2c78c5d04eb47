import { parseInstant } from '#domain';
import { StartError } from '#foundation';
import { START_POSITION, type StoredEvent } from '#kernel';

/** Returns whether a fact belongs to the books as of some moment. */
export type EventFilter = (event: StoredEvent) => boolean;

/**
 * @param until a position or a booking time; undefined is now
 * @throws StartError when it is neither
 */
export function parseUntilFilter(until: string | undefined): EventFilter {
  if (until === undefined) return () => true;
  if (/^\d+$/.test(until)) {
    const position = BigInt(until);
    return (event) => event.position <= position;
  }
  const instant = parseInstant(until);
  if (instant === undefined) throw new StartError('--until takes a position or an ISO 8601 time.');
  return (event) => event.recordedAt <= instant;
}

/** How far facts were read. */
export class ReplayExtent {
  private eventCount = 0;
  private last = START_POSITION;

  add({ position }: StoredEvent): void {
    this.eventCount++;
    this.last = position;
  }

  toString(): string {
    return `As of ${this.eventCount === 0 ? 'the beginning' : `position ${this.last}`}: ${this.eventCount} facts`;
  }
}

/** A line of a table: a name, and figures to the right of it. */
export function formatColumns(name: string, ...values: readonly string[]): string {
  return (name.padEnd(40) + values.map((value) => value.padStart(24)).join('')).trimEnd();
}
