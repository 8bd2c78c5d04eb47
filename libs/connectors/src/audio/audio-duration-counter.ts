import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { AudioDurationCounter, type AudioRecording, UpstreamError } from '#application';

/** A file that takes longer was probably crafted for that purpose, and is not accepted as a recording. */
const MEASURE_TIMEOUT_MS = 20_000;
/** A file that needs more heap is not accepted either. */
const MAX_HEAP_MB = 256;
const MAX_QUEUE_LENGTH = 100;
const RETRY_AFTER_SECONDS = 5;

const WORKER_URL = new URL(`./measure-worker${path.extname(import.meta.filename)}`, import.meta.url);

/**
 * Measures recordings in a worker thread, one at a time. A file of 25 MB takes some tenths of a second of CPU time and
 * is completely in memory during that time.
 */
export class WorkerAudioDurationCounter extends AudioDurationCounter {
  private worker: Worker | undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private queueLength = 0;

  /**
   * @returns undefined if the file is not a supported recording, or its measurement fails or takes too long
   * @throws UpstreamError with `not_served` if too many recordings are queued
   */
  override async measure(file: string): Promise<AudioRecording | undefined> {
    if (this.queueLength >= MAX_QUEUE_LENGTH)
      throw new UpstreamError('not_served', 'Too many recordings are being processed; retry in a moment', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    this.queueLength += 1;
    const measurement = this.queue.then(() => this.measureInWorker(file)).finally(() => this.queueLength--);
    this.queue = measurement.catch(() => {}); // the caller gets the error
    return measurement;
  }

  async close(): Promise<void> {
    await this.worker?.terminate();
  }

  private async measureInWorker(file: string): Promise<AudioRecording | undefined> {
    const worker = this.getWorker();
    const { promise, resolve } = Promise.withResolvers<AudioRecording | undefined>();
    const stopWorker = () => {
      this.worker = undefined;
      void worker.terminate();
      resolve(undefined);
    };
    const timer = setTimeout(stopWorker, MEASURE_TIMEOUT_MS);
    worker.ref();
    worker.on('message', resolve).on('error', stopWorker).on('exit', stopWorker);
    worker.postMessage(file);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      worker.off('message', resolve).off('error', stopWorker).off('exit', stopWorker);
      worker.unref();
    }
  }

  private getWorker(): Worker {
    if (this.worker) return this.worker;
    const worker = new Worker(WORKER_URL, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } });
    this.worker = worker;
    return worker
      .on('error', () => {})
      .on('exit', () => {
        if (this.worker === worker) this.worker = undefined;
      });
  }
}
