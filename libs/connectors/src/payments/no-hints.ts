import { once } from 'node:events';

/** A subscription without references: payments are found by polling or reported by webhooks. It ends with `signal`. */
export function createEmptySubscription(signal: AbortSignal): AsyncIterable<never> {
  const next = async () => {
    if (!signal.aborted) await once(signal, 'abort');
    return { done: true as const, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}
