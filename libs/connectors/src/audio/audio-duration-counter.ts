import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { AudioDurationCounter, type AudioRecording, UpstreamError } from '#application';

/** What takes longer, or more memory, was made to do so, and is refused. */
const MAX_MS = 20_000;
const MAX_HEAP_MB = 256;
const MAX_WAITING = 100;
const RETRY_AFTER_SECONDS = 5;

const WORKER = new URL(`./count-worker${path.extname(import.meta.filename)}`, import.meta.url);

/**
 * Counts recordings in a thread of its own, one at a time: a file of 25 MB takes some tenths of a second of a core, and
 * lies in memory meanwhile.
 */
export class WorkerAudioDurationCounter extends AudioDurationCounter {
  private worker: Worker | undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  /** @throws UpstreamError when too many wait */
  override async measure(file: string): Promise<AudioRecording | undefined> {
    if (this.waiting >= MAX_WAITING)
      throw new UpstreamError('not_served', 'Too many recordings are being read at the moment; try again soon', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    this.waiting += 1;
    const counting = this.queue.then(() => this.measureInWorker(file)).finally(() => this.waiting--);
    this.queue = counting.catch(() => {});
    return counting;
  }

  async close(): Promise<void> {
    await this.worker?.terminate();
  }

  private async measureInWorker(file: string): Promise<AudioRecording | undefined> {
    const worker = this.running();
    const { promise, resolve } = Promise.withResolvers<AudioRecording | undefined>();
    const giveUp = () => {
      this.worker = undefined;
      void worker.terminate();
      resolve(undefined);
    };
    const late = setTimeout(giveUp, MAX_MS);
    worker.ref();
    worker.on('message', resolve).on('error', giveUp).on('exit', giveUp);
    worker.postMessage(file);
    try {
      return await promise;
    } finally {
      clearTimeout(late);
      worker.off('message', resolve).off('error', giveUp).off('exit', giveUp);
      worker.unref();
    }
  }

  private running(): Worker {
    if (this.worker) return this.worker;
    const worker = new Worker(WORKER, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } });
    this.worker = worker;
    return worker
      .on('error', () => {})
      .on('exit', () => {
        if (this.worker === worker) this.worker = undefined;
      });
  }
}
