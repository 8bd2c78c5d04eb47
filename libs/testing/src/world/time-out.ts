import { extendTimeouts } from '../replace-delays.ts';
import { waitUntil } from '../wait-until.ts';
import type { TestWorld } from './world.ts';

/**
 * Sends a request, and ends the gateway's time limit for its response as soon as the provider is called. So the outcome
 * depends neither on a short limit nor on the speed of the host.
 * @param due the number of calls without a response until then, or another condition
 */
export async function timeOut<T>(
  { foundation, traffic }: TestWorld,
  send: () => Promise<T>,
  due: number | (() => boolean | Promise<boolean>) = 1,
): Promise<T> {
  const limit = extendTimeouts(foundation.settings.totalTimeoutMs);
  try {
    const response = send();
    await waitUntil(typeof due === 'number' ? () => traffic.openCallCount >= due : due);
    limit.end();
    return await response;
  } finally {
    limit.end();
  }
}
