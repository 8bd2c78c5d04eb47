import { MAX_SAMPLES, SampleWindow } from './sample-window.ts';

export interface Sample {
  /** What was measured, such as the output lengths of a model. */
  readonly name: string;
  readonly value: number;
}

/** Shares samples between processes. */
export abstract class SampleStore {
  /** Adds samples of this process. The newest ones of each measurement replace older ones of any process. */
  abstract add(samples: readonly Sample[]): Promise<void>;
  /** Returns the samples that other processes have added since the last call, at first all, the oldest first. */
  abstract readNew(): Promise<readonly Sample[]>;
}

/** The newest samples of each measurement, of this process and of those that share theirs. */
export class SampleRegistry {
  private readonly windows = new Map<string, SampleWindow>();
  /** Samples of this process that are not shared yet: the newest ones of each measurement. */
  private unshared = new Map<string, number[]>();

  /** @returns undefined without a sample */
  get(name: string): SampleWindow | undefined {
    return this.windows.get(name);
  }

  record(name: string, value: number): void {
    this.add({ name, value });
    const values = this.unshared.get(name) ?? [];
    if (values.length === 0) this.unshared.set(name, values);
    values.push(value);
    if (values.length > MAX_SAMPLES) values.shift();
  }

  /**
   * Adds the samples of this process to the store, and those of other processes to this registry. Calls must not
   * overlap.
   * @throws any error of the store; samples that were not added are added with the next call
   */
  async exchange(store: SampleStore): Promise<void> {
    await this.share(store);
    for (const sample of await store.readNew()) this.add(sample);
  }

  private async share(store: SampleStore): Promise<void> {
    const ownSamples = this.unshared;
    if (ownSamples.size === 0) return;
    this.unshared = new Map();
    try {
      await store.add([...ownSamples].flatMap(([name, values]) => values.map((value) => ({ name, value }))));
    } catch (error) {
      // If only the response was lost, they are added twice. A percentile of 128 samples tolerates that.
      for (const [name, values] of ownSamples)
        this.unshared.set(name, [...values, ...(this.unshared.get(name) ?? [])].slice(-MAX_SAMPLES));
      throw error;
    }
  }

  private add({ name, value }: Sample): void {
    const samples = this.windows.get(name) ?? new SampleWindow();
    if (samples.count === 0) this.windows.set(name, samples);
    samples.add(value);
  }
}
