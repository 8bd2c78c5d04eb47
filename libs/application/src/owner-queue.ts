/**
 * Runs one task of each owner at a time. What an owner submits while one of its tasks runs waits for that task, so a
 * resource that serves submissions in order is shared fairly by the owners.
 */
export class OwnerQueue {
  /** By owner: the end of its last task. */
  private readonly lastTasks = new Map<string, Promise<unknown>>();

  /** Runs a task after the earlier tasks of the same owner. @throws what the task throws */
  async run<T>(owner: string, task: () => Promise<T>): Promise<T> {
    const result = (this.lastTasks.get(owner) ?? Promise.resolve()).then(task);
    const end = result.catch(() => {}); // the caller gets the error of its task
    this.lastTasks.set(owner, end);
    try {
      return await result;
    } finally {
      if (this.lastTasks.get(owner) === end) this.lastTasks.delete(owner);
    }
  }
}
