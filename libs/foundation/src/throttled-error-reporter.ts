/** Minimum time between two lines about the same problem with the same reasons, while the problem is in memory. */
export const REPEAT_INTERVAL_MS = 60_000;
/** Maximum number of problems in memory. One more removes the oldest. */
const MAX_ENTRIES = 200;
/** Problems are compared by this many first characters of their text and reasons. */
const MAX_KEY_LENGTH = 1_000;
const MAX_CAUSES = 8;

type Warn = (problem: string, error: unknown) => void;
/**
 * Calls `done` after this time, unless the returned function is called before. Must not delay the end of the process.
 */
type Schedule = (milliseconds: number, done: () => void) => () => void;

export interface ThrottledReporter {
  readonly report: Warn;
  /** Ends the reminders. Repetitions that are not yet logged are lost. */
  close(): void;
}

interface ThrottledProblem {
  readonly problem: string;
  /** The latest error. */
  error: unknown;
  /** Number of times that the problem was reported since it was last logged. */
  repeats: number;
  cancel: () => void;
}

/**
 * Creates an error reporter that does not repeat itself. A problem is logged at once, then once a minute with the
 * number of its repetitions, until a minute passes without one.
 */
export function createThrottledReporter(warn: Warn, schedule: Schedule = scheduleTimer): ThrottledReporter {
  const entries = new Map<string, ThrottledProblem>();
  let isClosed = false;
  const reportRepeats = ({ problem, error, repeats }: ThrottledProblem) => {
    if (repeats > 0)
      warn(`${problem} (and ${repeats === 1 ? 'once' : `${repeats} times`} more in the last minute)`, error);
  };
  const scheduleReport = (key: string, entry: ThrottledProblem) => {
    if (isClosed) return;
    entry.cancel = schedule(REPEAT_INTERVAL_MS, () => {
      reportRepeats(entry);
      if (entry.repeats === 0) entries.delete(key);
      else scheduleReport(key, Object.assign(entry, { repeats: 0 }));
    });
  };
  const report: Warn = (problem, error) => {
    const key = [problem, ...listReasons(error)].join('\n').slice(0, MAX_KEY_LENGTH);
    const existing = entries.get(key);
    if (existing) {
      Object.assign(existing, { error, repeats: existing.repeats + 1 });
      return;
    }
    const [oldest] = entries.size < MAX_ENTRIES ? [] : entries.entries();
    if (oldest) {
      oldest[1].cancel();
      entries.delete(oldest[0]);
      reportRepeats(oldest[1]);
    }
    warn(problem, error);
    const entry: ThrottledProblem = { problem, error, repeats: 0, cancel: () => {} };
    entries.set(key, entry);
    scheduleReport(key, entry);
  };
  const close = () => {
    isClosed = true;
    for (const { cancel } of entries.values()) cancel();
  };
  return { report, close };
}

function listReasons(error: unknown): readonly string[] {
  const reasons: string[] = [];
  for (let current = error; current !== undefined && reasons.length < MAX_CAUSES; ) {
    reasons.push(String(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return reasons;
}

function scheduleTimer(milliseconds: number, done: () => void): () => void {
  const timer = setTimeout(done, milliseconds).unref();
  return () => clearTimeout(timer);
}
