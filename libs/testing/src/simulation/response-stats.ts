import { OutputLengthStats } from '#application';

/** Output limit of the models. */
export const MAX_OUTPUT = 128_000;
/** The catalogue's figure for a long response, in tokens. */
const LONG_OUTPUT = 2_000;
const MODEL = { id: 'm', maxOutput: MAX_OUTPUT, longOutput: LONG_OUTPUT };
const PAYER = 'payer';

/** What gateways measure of the responses of one model. */
export class ResponseStats {
  private readonly lengths = new OutputLengthStats();

  constructor(
    lengths: readonly number[],
    /** Undefined until it is measured. */
    public tokensPerSecond: number | undefined,
  ) {
    for (const tokens of lengths) this.lengths.start(MODEL, 'others')({ tokens, isTruncated: false });
  }

  /** Records the start of a response, and with the returned function its length. */
  start() {
    return this.lengths.start(MODEL, PAYER);
  }

  getLengths() {
    return this.lengths.getLengths(MODEL, PAYER);
  }
}
