/** A line of the simulated providers' bill. */
export interface BillLine {
  readonly id: string;
  readonly model: string;
  readonly tokens: { readonly input: number; readonly cached_input: number; readonly output: number };
  readonly usd: string;
  readonly fault?: string;
}

/** Reads the bill of the sandbox. */
export class SandboxBillReader {
  constructor(private readonly sandbox: string) {}

  async fetchTotal(): Promise<{ readonly total_usd: string; readonly lines: number }> {
    return (await (await fetch(`${this.sandbox}/bill`)).json()) as never;
  }

  /** Returns one line for each billed call. */
  async fetchLines(): Promise<readonly BillLine[]> {
    return (await (await fetch(`${this.sandbox}/bill/lines`)).json()) as never;
  }

  async clear(): Promise<void> {
    await fetch(`${this.sandbox}/bill`, { method: 'DELETE' });
  }
}
