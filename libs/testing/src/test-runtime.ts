import type { Runtime } from '#kernel';
import { createNodeRuntime } from '#runtime';

/** Returns the runtime of Node, apart from `overrides`. Errors are not reported unless `overrides` does. */
export function createTestRuntime(overrides: Partial<Runtime> = {}): Runtime {
  return { ...createNodeRuntime(() => {}), ...overrides };
}
