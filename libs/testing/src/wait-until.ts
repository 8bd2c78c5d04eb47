/** Longer than anything takes that happens at all, on any host: only a test that hangs waits for this long. */
const TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 10;

/** Waits until the condition is met. @throws Error if it is not met within two minutes */
export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('the expected condition was not met in time');
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
