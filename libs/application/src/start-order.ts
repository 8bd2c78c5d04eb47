interface Started<T> {
  result?: { readonly value: T | undefined };
  isOvertaken: boolean;
}

/**
 * Passes on the results of concurrent tasks in the order in which the tasks started. Of many tasks that start together,
 * the short ones end first, so that their results alone would not be typical.
 */
export class StartOrder<T> {
  private readonly tasks: Started<T>[] = [];

  /** @param maxWaiting number of results that wait for a task at most; then it is overtaken */
  constructor(
    private readonly maxWaiting: number,
    private readonly accept: (value: T) => void,
  ) {}

  /**
   * Records the start of a task. Its end must be recorded with the returned function, without a value if it has none;
   * later calls of the function do nothing.
   */
  start(): (value?: T) => void {
    const task: Started<T> = { isOvertaken: false };
    this.tasks.push(task);
    if (this.tasks.length > this.maxWaiting) {
      (this.tasks.shift() as Started<T>).isOvertaken = true;
      this.acceptEnded();
    }
    return (value) => {
      if (task.result) return;
      task.result = { value };
      if (task.isOvertaken) this.acceptValue(value);
      else this.acceptEnded();
    };
  }

  private acceptEnded(): void {
    let ended = 0;
    for (; this.tasks[ended]?.result; ended++);
    for (const { result } of this.tasks.splice(0, ended)) this.acceptValue(result?.value);
  }

  private acceptValue(value: T | undefined): void {
    if (value !== undefined) this.accept(value);
  }
}
