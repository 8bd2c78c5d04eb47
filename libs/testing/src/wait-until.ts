/** Longer than anything takes that happens at all, on any host: only a test that hangs waits for this long. */
const TIMEOUT_MS = 300_000;
const MIN_POLL_INTERVAL_MS = 5;
const MAX_POLL_INTERVAL_MS = 40;

/**
 * Waits until the condition is met. It is checked less and less often, so that long waits take little CPU time.
 * @throws Error if it is not met within five minutes
 */
export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (let wait = MIN_POLL_INTERVAL_MS; !(await condition()); wait = Math.min(wait * 1.5, MAX_POLL_INTERVAL_MS)) {
    if (performance.now() > deadline) throw new Error('the expected condition was not met in time');
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
