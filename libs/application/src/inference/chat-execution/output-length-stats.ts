/**
 * Statistics of output lengths and token counts in this process. The lengths determine the initial hold if a request
 * has no output limit, or one that is too high to be held in full.
 */
import { LRUCache } from 'lru-cache';

/** Minimum tokens of an initial hold. Most completions are shorter, so their hold need not be extended. */
export const MIN_INITIAL_TOKENS = 512;
/** Maximum number of samples per model, and per pair of a model and a payer. */
const MAX_SAMPLES = 128;
/** From this number of samples on, a payer's own statistics are used instead of those of all payers. */
const MIN_PAYER_SAMPLES = 20;
/** Percentile of the output lengths that the initial hold covers. */
const PERCENTILE = 75;
/** After the first samples, the percentile is recalculated only once per this many samples, because sorting is slow. */
const RECALCULATION_INTERVAL = 16;
/** Maximum number of pairs of a model and a payer whose samples are retained. */
const MAX_PAYERS = 20_000;
/** Upper limit of the ratio of the provider's token count to the gateway's. */
const MAX_RATIO = 2;
/** Minimum number of tokens for a meaningful comparison of tokenizers. */
const MIN_RATIO_TOKENS = 64;
/** Weight of a new ratio that is lower than the current one. A higher ratio applies at once. */
const NEWEST_WEIGHT = 0.2;

class LengthSamples {
  private readonly samples: number[] = [];
  private next = 0;
  private added = 0;
  private percentile = 0;

  get count(): number {
    return this.samples.length;
  }

  add(tokens: number): void {
    this.samples[this.next] = tokens;
    this.next = (this.next + 1) % MAX_SAMPLES;
    this.added++;
    if (this.added > MIN_PAYER_SAMPLES && this.added % RECALCULATION_INTERVAL !== 0) return;
    this.percentile = this.samples.toSorted((a, b) => a - b)[Math.floor((this.count * PERCENTILE) / 100)] ?? 0;
  }

  get typicalLength(): number {
    return this.percentile;
  }
}

export class OutputLengthStats {
  private readonly byModel = new Map<string, LengthSamples>();
  private readonly byPayer = new LRUCache<string, LengthSamples>({ max: MAX_PAYERS });
  private readonly ratios = new Map<string, number>();

  recordLength(model: string, payer: string, tokens: number): void {
    addLength(this.byModel, model, tokens);
    addLength(this.byPayer, `${model} ${payer}`, tokens);
  }

  /** Returns the number of output tokens that the initial hold covers. */
  getInitialTokens(model: string, payer: string): number {
    const payerLengths = this.byPayer.get(`${model} ${payer}`);
    const lengths = payerLengths && payerLengths.count >= MIN_PAYER_SAMPLES ? payerLengths : this.byModel.get(model);
    return Math.max(lengths?.typicalLength ?? 0, MIN_INITIAL_TOKENS);
  }

  /** Records that the provider reported `reported` tokens for a text in which the gateway counted `countedTokens`. */
  recordRatio(model: string, countedTokens: number, reported: number): void {
    if (countedTokens < MIN_RATIO_TOKENS) return;
    const ratio = Math.min(Math.max(reported / countedTokens, 1), MAX_RATIO);
    const previousRatio = this.ratios.get(model) ?? 1;
    this.ratios.set(model, Math.max(ratio, previousRatio + NEWEST_WEIGHT * (ratio - previousRatio)));
  }

  /** Returns the ratio of the provider's token count to the gateway's, from 1 to 2. */
  getRatio(model: string): number {
    return this.ratios.get(model) ?? 1;
  }
}

/** Common methods of `Map` and `LRUCache`. */
interface LengthMap {
  get(name: string): LengthSamples | undefined;
  set(name: string, lengths: LengthSamples): unknown;
}

function addLength(map: LengthMap, name: string, tokens: number): void {
  const lengths = map.get(name) ?? new LengthSamples();
  if (lengths.count === 0) map.set(name, lengths);
  lengths.add(tokens);
}
