import { once } from 'node:events';

/**
 * The subscription of a payment backend that pushes no hints: payments are found by polling or reported by webhooks.
 */
export function createEmptySubscription(signal: AbortSignal): AsyncIterable<never> {
  const next = async () => {
    if (!signal.aborted) await once(signal, 'abort');
    return { done: true as const, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}
