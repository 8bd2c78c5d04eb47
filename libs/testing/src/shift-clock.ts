import type { Clock } from '#application';

/** Sets a clock forward, or back. @returns a function that sets it right again */
export function shiftClock(clock: Clock, milliseconds: number): () => void {
  const now = clock.nowMs.bind(clock);
  Object.defineProperty(clock, 'nowMs', { value: () => now() + milliseconds, configurable: true });
  return () => void Reflect.deleteProperty(clock, 'nowMs');
}
