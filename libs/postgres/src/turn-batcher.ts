interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** Collects what is written in one turn of the event loop, so that one statement writes it. */
export class TurnBatcher<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];

  /** @param write returns one result per item, in the order of the items */
  constructor(private readonly write: (items: readonly Item[]) => Promise<readonly Result[]>) {}

  /** Resolves with the result of this item. @throws any error of `write` */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.waiting.push({ item, resolve, reject }) === 1) setImmediate(() => void this.flush());
    });
  }

  private async flush(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    try {
      const results = await this.write(batch.map(({ item }) => item));
      for (const [i, { resolve }] of batch.entries()) resolve(results[i] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
