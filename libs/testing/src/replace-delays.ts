import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

type Pause = (milliseconds: number, value?: undefined, options?: { readonly signal?: AbortSignal }) => Promise<unknown>;

/** Whoever pauses in this process does so by `pause`, until what is returned is called. */
export function replaceDelays(pause: Pause): () => void {
  const original = timers.setTimeout;
  setDelay(pause as typeof original);
  return () => setDelay(original);
}

function setDelay(pause: typeof timers.setTimeout): void {
  timers.setTimeout = pause;
  syncBuiltinESMExports(); // for those who import it by name
}
