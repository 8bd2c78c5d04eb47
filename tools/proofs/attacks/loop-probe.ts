/**
 * Measures how long single turns of the event loop of a process take. Loaded into a gateway with `--import`. The signal
 * SIGUSR2 starts a measurement, and ends it when it is sent again: then the results are written to the file
 * LOOP_PROBE_FILE. Between both signals the loop does not sleep.
 */
import { subscribe } from 'node:diagnostics_channel';
import { writeFileSync } from 'node:fs';

/**
 * In milliseconds. The time of a turn is the elapsed time or the CPU time of the thread, whichever is shorter: the
 * elapsed time includes pauses in which other processes have the CPU, and Linux rounds the CPU time of a running thread
 * to ticks of up to 4 ms.
 */
export interface LoopTimes {
  /** The longest work of the queue for large bodies, which parses JSON. */
  readonly parsing: number;
  /** The longest turn without that work. */
  readonly other: number;
}

const file = process.env.LOOP_PROBE_FILE;
let [parsing, other, parsingInIteration, isMeasuring] = [0, 0, 0, false];

function measureIterations(): void {
  const [startedAt, before] = [performance.now(), process.threadCpuUsage()];
  parsingInIteration = 0;
  setImmediate(() => {
    const { user, system } = process.threadCpuUsage(before);
    const elapsedMs = Math.min(performance.now() - startedAt, (user + system) / 1_000);
    other = Math.max(other, elapsedMs - parsingInIteration);
    if (isMeasuring) measureIterations();
  });
}

if (file !== undefined) {
  subscribe('countinghouse:heavy-work', (message) => {
    const { elapsedMs } = message as { readonly elapsedMs: number };
    parsingInIteration += elapsedMs;
    parsing = Math.max(parsing, elapsedMs);
  });
  process.on('SIGUSR2', () => {
    isMeasuring = !isMeasuring;
    if (!isMeasuring) return writeFileSync(file, JSON.stringify({ parsing, other } satisfies LoopTimes));
    [parsing, other] = [0, 0];
    measureIterations();
  });
}
