import cliProgress from 'cli-progress';

/** How often a line is printed where no terminal shows the progress. */
const LINE_INTERVAL_MS = 30_000;
/** A bar shows the time left at the speed of the last `BAR_SAMPLES` updates, so of the last 30 s. */
const BAR_UPDATE_MS = 250;
const BAR_SAMPLES = 120;
const MAX_BAR_WIDTH = 20;

/** Work that may take minutes. */
export interface ProgressTask {
  readonly name: string;
  readonly total: number;
  /** What the total counts, in the plural. */
  readonly unit: string;
}

export interface Progress {
  /** @param done how much of the total is done so far */
  update(done: number): void;
  /** Removes the progress from the terminal. Must be called even if the work fails. */
  finish(): void;
}

export type StartProgress = (task: ProgressTask) => Progress;

export interface ProgressOutput {
  readonly stream: NodeJS.WritableStream & { readonly isTTY?: boolean };
  nowMs(): number;
}

/**
 * Shows the progress of work with its rate and the time left: as a bar on a terminal, elsewhere as a line every 30 s.
 * Work that takes less prints no line.
 */
export function startProgress(
  task: ProgressTask,
  output: ProgressOutput = { stream: process.stderr, nowMs: () => performance.now() },
): Progress {
  return output.stream.isTTY ? startBar(task, output) : startLines(task, output);
}

function startBar(task: ProgressTask, { stream, nowMs }: ProgressOutput): Progress {
  const startedAt = nowMs();
  let updatedAt = startedAt;
  const bar = new cliProgress.SingleBar({
    stream,
    format: (options, { value, eta, progress, maxWidth }) => {
      const rate = calculateRate(value, nowMs() - startedAt);
      const text = formatProgress(task, { done: value, rate, secondsLeft: eta });
      const barsize = Math.min(MAX_BAR_WIDTH, maxWidth - `${text} []`.length);
      return barsize > 0 ? `${text} [${cliProgress.Format.BarFormat(progress, { ...options, barsize })}]` : text;
    },
    etaBuffer: BAR_SAMPLES,
    fps: 1_000 / BAR_UPDATE_MS,
    linewrap: true, // else the library changes a mode of the terminal, which an interrupted process would not restore
    clearOnComplete: true,
  });
  bar.start(task.total, 0);
  const update = (done: number) => {
    if (nowMs() - updatedAt < BAR_UPDATE_MS) return;
    updatedAt = nowMs();
    bar.update(done);
  };
  return { update, finish: () => bar.stop() };
}

function startLines(task: ProgressTask, { stream, nowMs }: ProgressOutput): Progress {
  const startedAt = nowMs();
  let printedAt = startedAt;
  const update = (done: number) => {
    if (nowMs() - printedAt < LINE_INTERVAL_MS) return;
    printedAt = nowMs();
    const rate = calculateRate(done, printedAt - startedAt);
    stream.write(`${formatProgress(task, { done, rate, secondsLeft: (task.total - done) / rate })}\n`);
  };
  return { update, finish: () => {} };
}

/** @returns the number per second */
function calculateRate(done: number, elapsedMs: number): number {
  return elapsedMs > 0 ? (done / elapsedMs) * 1_000 : 0;
}

interface ProgressState {
  readonly done: number;
  readonly rate: number;
  readonly secondsLeft: number;
}

function formatProgress({ name, total, unit }: ProgressTask, { done, rate, secondsLeft }: ProgressState): string {
  const text = `${name}: ${Math.round(done)} of ${Math.round(Math.max(total, done))} ${unit}`;
  return rate > 0 ? `${text}, ${Number(rate.toPrecision(2))} per second, ${formatDuration(secondsLeft)} left` : text;
}

/** @param seconds rounded up; of the library, which is not a number until it knows one */
function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'unknown time';
  if (seconds <= 60) return `${Math.max(0, Math.ceil(seconds))} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
