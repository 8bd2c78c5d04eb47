interface Waiting<Input, Result> {
  readonly input: Input;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** Collects what is written in one turn of the event loop, so that one statement writes it. */
export class Batcher<Input, Result> {
  private waiting: Waiting<Input, Result>[] = [];

  /** @param write returns one result per input, in the order of the inputs */
  constructor(private readonly write: (inputs: readonly Input[]) => Promise<readonly Result[]>) {}

  /** Resolves with the result of this input. @throws any error of `write` */
  add(input: Input): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.waiting.push({ input, resolve, reject }) === 1) setImmediate(() => void this.flush());
    });
  }

  private async flush(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    try {
      const results = await this.write(batch.map(({ input }) => input));
      for (const [i, { resolve }] of batch.entries()) resolve(results[i] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
