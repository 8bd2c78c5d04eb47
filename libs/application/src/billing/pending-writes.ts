/**
 * Writes about holds that continue after their requests have ended, because the event store did not confirm them in
 * time. Only this process knows of them, so it must not stop before they are done.
 */
export class PendingWrites {
  private readonly holdIdByWrite = new Map<Promise<unknown>, string>();

  track(holdId: string, write: Promise<unknown>): void {
    this.holdIdByWrite.set(write, holdId);
    const remove = () => void this.holdIdByWrite.delete(write);
    write.then(remove, remove);
  }

  get holdIds(): readonly string[] {
    return [...new Set(this.holdIdByWrite.values())];
  }

  /** Resolves when no write is pending any more, whether it was done or given up. */
  async waitUntilIdle(): Promise<void> {
    while (this.holdIdByWrite.size > 0) await Promise.allSettled(this.holdIdByWrite.keys());
  }
}
