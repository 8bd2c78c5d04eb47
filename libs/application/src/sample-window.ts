/** Number of samples that are retained. */
export const MAX_SAMPLES = 128;
/** Percentiles are calculated after each of so many samples, later once per this interval, because sorting is slow. */
const MIN_SORTED_SAMPLES = 20;
const SORT_INTERVAL = 16;
/**
 * The percentiles, and by how many standard errors their estimates exceed those of the samples. The percentile of few
 * samples is often far below that of the measurement. Money for long responses is reserved with the margin; otherwise
 * bursts of requests truncate each other.
 */
const MARGINS = { 75: 0, 90: 2 / 3, 95: 2 / 3, 99: 0 } as const;
const PERCENTILES = Object.keys(MARGINS).map(Number) as Percentile[];

export type Percentile = keyof typeof MARGINS;

/** The newest samples of a measurement, and their percentiles. */
export class SampleWindow {
  private readonly samples: number[] = [];
  private readonly percentiles = new Map<Percentile, number>();
  private highest = Number.NEGATIVE_INFINITY;
  private next = 0;
  private added = 0;

  get count(): number {
    return this.samples.length;
  }

  add(sample: number): void {
    this.samples[this.next] = sample;
    this.next = (this.next + 1) % MAX_SAMPLES;
    this.added++;
    // A sample above all others counts at once: the highest percentiles limit what can be lost.
    if (this.added <= MIN_SORTED_SAMPLES || this.added % SORT_INTERVAL === 0 || sample > this.highest) this.calculate();
  }

  /** @returns undefined without a sample */
  getPercentile(percentile: Percentile): number | undefined {
    return this.percentiles.get(percentile);
  }

  private calculate(): void {
    const sorted = this.samples.toSorted((a, b) => a - b);
    this.highest = sorted.at(-1) as number;
    for (const percentile of PERCENTILES)
      this.percentiles.set(percentile, sorted[findIndex(sorted.length, percentile)] as number);
  }
}

function findIndex(count: number, percentile: Percentile): number {
  const share = percentile / 100;
  const margin = MARGINS[percentile] * Math.sqrt(count * share * (1 - share));
  return Math.min(Math.floor(count * share + margin), count - 1);
}
