/** The same problem for the same reason is logged once in this time. */
export const REPEAT_INTERVAL_MS = 60_000;
/** Problems that are told apart at a time. One more drops the oldest. */
const MAX_ENTRIES = 200;
/** Characters of a problem and its reason by which it is told from others. */
const MAX_KEY_LENGTH = 1_000;
const MAX_CAUSES = 8;

type Warn = (problem: string, error: unknown) => void;
/** Calls `done` later, unless the returned function is called before. Keeps no process alive. */
type Schedule = (milliseconds: number, done: () => void) => () => void;

interface ThrottledProblem {
  readonly problem: string;
  /** The latest. */
  error: unknown;
  /** How often it has come since it was last logged. */
  repeats: number;
  cancel: () => void;
}

/**
 * An alarm that does not repeat itself: what fails again and again is logged at once, and then each minute with how often it came
 * in it, until a minute passes without it. What came in the last minute of a process is not counted any more.
 */
export function createThrottledReporter(warn: Warn, schedule: Schedule = scheduleTimer): Warn {
  const entries = new Map<string, ThrottledProblem>();
  const reportRepeats = ({ problem, error, repeats }: ThrottledProblem) => {
    if (repeats > 0)
      warn(`${problem} (and ${repeats === 1 ? 'once' : `${repeats} times`} more in the last minute)`, error);
  };
  const scheduleReport = (key: string, entry: ThrottledProblem) => {
    entry.cancel = schedule(REPEAT_INTERVAL_MS, () => {
      reportRepeats(entry);
      if (entry.repeats === 0) entries.delete(key);
      else scheduleReport(key, Object.assign(entry, { repeats: 0 }));
    });
  };
  return (problem, error) => {
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
