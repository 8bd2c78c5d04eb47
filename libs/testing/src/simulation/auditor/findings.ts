import type { AuditedEvent } from './event-data.ts';
import type { Rule } from './rules.ts';

/** A rule that the stored events break. */
export interface Finding {
  /** A short stable sentence. */
  readonly rule: Rule;
  /** Stream, revision, ids and amounts. */
  readonly detail: string;
}

/** Records broken rules, each with the event that is being checked. */
export class FindingRecorder {
  readonly issues: Finding[] = [];
  /** Undefined while the rules for the end of a run are checked. */
  event: AuditedEvent | undefined;

  constructor(private readonly maxIssues: number) {}

  /** Records a finding unless `isTrue`. @param describe returns ids and amounts */
  check(isTrue: boolean, rule: Rule, describe: () => string): void {
    if (isTrue || this.issues.length >= this.maxIssues) return;
    const { event } = this;
    const location = event
      ? `${event.stream}@${event.revision} ${event.type} (position ${event.position})`
      : 'at the end';
    this.issues.push({ rule, detail: `${location}: ${describe()}` });
  }

  /** Checks that two values are the same. */
  checkSame(actual: unknown, expected: unknown, rule: Rule, what: string): void {
    this.check(actual === expected, rule, () => `${what} is ${String(actual)} instead of ${String(expected)}`);
  }
}
