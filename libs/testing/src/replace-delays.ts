import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

type Pause = (milliseconds: number, value?: undefined, options?: { readonly signal?: AbortSignal }) => Promise<unknown>;

/** Whoever pauses in this process does so by `pause`, until what is returned is called. */
export function replacePauses(pause: Pause): () => void {
  const own = timers.setTimeout;
  use(pause as typeof own);
  return () => use(own);
}

function use(pause: typeof timers.setTimeout): void {
  timers.setTimeout = pause;
  syncBuiltinESMExports(); // for those who import it by name
}
