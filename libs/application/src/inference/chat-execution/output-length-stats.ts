/** How long the answers of models are, as this process has seen: what is held at first for one that has no limit follows from it. */
import { LRUCache } from 'lru-cache';

/** Nothing less is held at first: most answers are shorter, so that they cost no further append. */
export const MIN_INITIAL_TOKENS = 512;
/** Answers that are remembered of each model, and of each model and payer. */
const MAX_SAMPLES = 128;
/** From so many answers on a payer's own say more than everybody's. */
const MIN_PAYER_SAMPLES = 20;
/** Of a hundred answers so many are no longer than what is held at first. */
const PERCENTILE = 75;
/** After so many further answers the percentile is taken anew: it takes longer than to note one. */
const RECALCULATION_INTERVAL = 16;
/** Models with a payer of each. */
const MAX_PAYERS = 20_000;
/** The counts of our tokenizer and a vendor's differ by no more than this. */
const MAX_RATIO = 2;
/** Fewer tokens say nothing about tokenizers. */
const MIN_RATIO_TOKENS = 64;
/** Weight of a count that is lower than those before. */
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

  /** An answer took so many tokens of output. */
  recordLength(model: string, payer: string, tokens: number): void {
    addLength(this.byModel, model, tokens);
    addLength(this.byPayer, `${model} ${payer}`, tokens);
  }

  /** How many tokens of output are held for at first. */
  getInitialTokens(model: string, payer: string): number {
    const payerLengths = this.byPayer.get(`${model} ${payer}`);
    const lengths = payerLengths && payerLengths.count >= MIN_PAYER_SAMPLES ? payerLengths : this.byModel.get(model);
    return Math.max(lengths?.typicalLength ?? 0, MIN_INITIAL_TOKENS);
  }

  /** The vendor counts `reported` tokens where we count `countedTokens`. */
  recordRatio(model: string, countedTokens: number, reported: number): void {
    if (countedTokens < MIN_RATIO_TOKENS) return;
    const ratio = Math.min(Math.max(reported / countedTokens, 1), MAX_RATIO);
    const previousRatio = this.ratios.get(model) ?? 1;
    this.ratios.set(model, Math.max(ratio, previousRatio + NEWEST_WEIGHT * (ratio - previousRatio)));
  }

  /** How many tokens a vendor makes of one that we count, at most. */
  getRatio(model: string): number {
    return this.ratios.get(model) ?? 1;
  }
}

/** Both kinds of maps. */
interface LengthMap {
  get(name: string): LengthSamples | undefined;
  set(name: string, lengths: LengthSamples): unknown;
}

function addLength(map: LengthMap, name: string, tokens: number): void {
  const lengths = map.get(name) ?? new LengthSamples();
  if (lengths.count === 0) map.set(name, lengths);
  lengths.add(tokens);
}
