import { once } from 'node:events';

/** Of a back end that reports nothing by itself: what came is found by looking, or named by its web hooks. */
export function createEmptySubscription(signal: AbortSignal): AsyncIterable<never> {
  const next = async () => {
    if (!signal.aborted) await once(signal, 'abort');
    return { done: true as const, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}
