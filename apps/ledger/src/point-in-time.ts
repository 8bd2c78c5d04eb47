import { parseInstant } from '#domain';
import { StartError } from '#foundation';
import { START_POSITION, type StoredEvent } from '#kernel';

/** Returns whether a fact belongs to the books as of some moment. */
export type EventFilter = (fact: StoredEvent) => boolean;

/**
 * @param until a position or a booking time; undefined is now
 * @throws StartError when it is neither
 */
export function parseUntilFilter(until: string | undefined): EventFilter {
  if (until === undefined) return () => true;
  if (/^\d+$/.test(until)) {
    const position = BigInt(until);
    return (fact) => fact.position <= position;
  }
  const instant = parseInstant(until);
  if (instant === undefined) throw new StartError('--until takes a position or an ISO 8601 time.');
  return (fact) => fact.recordedAt <= instant;
}

/** How far facts were read. */
export class Extent {
  private facts = 0;
  private last = START_POSITION;

  add({ position }: StoredEvent): void {
    this.facts++;
    this.last = position;
  }

  toString(): string {
    return `As of ${this.facts === 0 ? 'the beginning' : `position ${this.last}`}: ${this.facts} facts`;
  }
}

/** A line of a table: a name, and figures to the right of it. */
export function formatColumns(name: string, ...figures: readonly string[]): string {
  return (name.padEnd(40) + figures.map((each) => each.padStart(24)).join('')).trimEnd();
}
