import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

type Pause = (milliseconds: number, value?: undefined, options?: { readonly signal?: AbortSignal }) => Promise<unknown>;

/** Replaces `setTimeout` of timers/promises in this process by `pause`, until the returned function is called. */
export function replaceDelays(pause: Pause): () => void {
  const original = timers.setTimeout;
  setDelay(pause as typeof original);
  return () => setDelay(original);
}

function setDelay(pause: typeof timers.setTimeout): void {
  timers.setTimeout = pause;
  syncBuiltinESMExports(); // for modules that import it by name
}
