/** The catalogue's figure for a long response, in tokens. */
const LONG_OUTPUT = 2_000;
const MIN_INITIAL_TOKENS = 512;
/** Number of responses from which the measured lengths are used instead of the figure. */
const MIN_SAMPLES = 20;
const MAX_SAMPLES = 128;
const MIN_SAMPLE_TOKENS = 20;

export interface SimulatedLengths {
  /** Tokens of the first hold. */
  readonly first: number;
  /** Tokens of the lowest output limit. */
  readonly minLimit: number;
  /** Tokens of a long response, up to which other requests leave money. */
  readonly long: number;
}

/** What gateways measure of the responses of one model. */
export class ResponseStats {
  private current: SimulatedLengths;

  constructor(
    private readonly lengths: number[],
    /** Undefined until it is measured. */
    public tokensPerSecond: number | undefined,
  ) {
    this.current = this.calculateLengths();
  }

  addLength(tokens: number): void {
    if (tokens < MIN_SAMPLE_TOKENS) return;
    this.lengths.push(tokens);
    this.current = this.calculateLengths();
  }

  getLengths(): SimulatedLengths {
    return this.current;
  }

  private calculateLengths(): SimulatedLengths {
    const sorted = this.lengths.slice(-MAX_SAMPLES).toSorted((a, b) => a - b);
    const getPercentile = (percent: number) => sorted[Math.floor((sorted.length * percent) / 100)] as number;
    const isMeasured = sorted.length >= MIN_SAMPLES;
    const first = Math.max(isMeasured ? getPercentile(75) : LONG_OUTPUT * 0.75, MIN_INITIAL_TOKENS);
    const minLimit = Math.max(isMeasured ? getPercentile(90) : LONG_OUTPUT, first);
    return { first, minLimit, long: Math.max(isMeasured ? getPercentile(95) : LONG_OUTPUT, minLimit) };
  }
}
