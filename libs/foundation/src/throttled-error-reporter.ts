/** The same problem for the same reason is logged once in this time. */
export const REPEAT_INTERVAL_MS = 60_000;
/** Problems that are told apart at a time. One more drops the oldest. */
const MAX_KEPT = 200;
/** Characters of a problem and its reason by which it is told from others. */
const MAX_KEY = 1_000;
const MAX_CAUSES = 8;

type Warn = (problem: string, error: unknown) => void;
/** Calls `done` later, unless the returned function is called before. Keeps no process alive. */
type After = (milliseconds: number, done: () => void) => () => void;

interface Kept {
  readonly problem: string;
  /** The latest. */
  error: unknown;
  /** How often it has come since it was last logged. */
  times: number;
  forget: () => void;
}

/**
 * An alarm that does not repeat itself: what fails again and again is logged at once, and then each minute with how often it came
 * in it, until a minute passes without it. What came in the last minute of a process is not counted any more.
 */
export function createThrottledReporter(warn: Warn, after: After = afterAWhile): Warn {
  const kept = new Map<string, Kept>();
  const tellRest = ({ problem, error, times }: Kept) => {
    if (times > 0) warn(`${problem} (and ${times === 1 ? 'once' : `${times} times`} more in the last minute)`, error);
  };
  const watch = (key: string, each: Kept) => {
    each.forget = after(REPEAT_INTERVAL_MS, () => {
      tellRest(each);
      if (each.times === 0) kept.delete(key);
      else watch(key, Object.assign(each, { times: 0 }));
    });
  };
  return (problem, error) => {
    const key = [problem, ...reasonsOf(error)].join('\n').slice(0, MAX_KEY);
    const known = kept.get(key);
    if (known) {
      Object.assign(known, { error, times: known.times + 1 });
      return;
    }
    const [oldest] = kept.size < MAX_KEPT ? [] : kept.entries();
    if (oldest) {
      oldest[1].forget();
      kept.delete(oldest[0]);
      tellRest(oldest[1]);
    }
    warn(problem, error);
    const each: Kept = { problem, error, times: 0, forget: () => {} };
    kept.set(key, each);
    watch(key, each);
  };
}

function reasonsOf(error: unknown): readonly string[] {
  const reasons: string[] = [];
  for (let each = error; each !== undefined && reasons.length < MAX_CAUSES; ) {
    reasons.push(String(each));
    each = each instanceof Error ? each.cause : undefined;
  }
  return reasons;
}

function afterAWhile(milliseconds: number, done: () => void): () => void {
  const timer = setTimeout(done, milliseconds).unref();
  return () => clearTimeout(timer);
}
