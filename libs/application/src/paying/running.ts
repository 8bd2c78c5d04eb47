import { UpstreamFailure } from '../failures.ts';

/** Work that a shutdown waits for. */
export interface RunningTask {
  /** Aborts when the task has taken too long, or must be cut short; its reason is an `UpstreamFailure`. */
  readonly signal: AbortSignal;
  cutShort(failure: UpstreamFailure): void;
  finished(): void;
}

/** The requests that this process is serving. */
export class RunningTasks {
  private readonly tasks = new Set<RunningTask>();
  private idle: (() => void) | undefined;

  begin(timeoutMs: number): RunningTask {
    const abort = new AbortController();
    const timer = setTimeout(
      () => task.cutShort(new UpstreamFailure('timeout', 'The answer took too long')),
      timeoutMs,
    );
    const task: RunningTask = {
      signal: abort.signal,
      cutShort: (failure) => abort.abort(failure),
      finished: () => {
        clearTimeout(timer);
        this.tasks.delete(task);
        if (this.tasks.size === 0) this.idle?.();
      },
    };
    this.tasks.add(task);
    return task;
  }

  /** Waits until all tasks have finished; those that take longer than `timeoutMs` are cut short and settled as they are. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.tasks.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.idle = resolve;
    });
    const timer = setTimeout(() => {
      for (const task of this.tasks) task.cutShort(new UpstreamFailure('shutdown', 'The gateway is shutting down'));
    }, timeoutMs);
    await idle;
    clearTimeout(timer);
  }
}
