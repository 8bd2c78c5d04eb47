/**
 * Statistics of output lengths and token counts. The lengths determine the initial hold and the exposure of a request
 * that has no output limit, or one that is too high to be held in full.
 */
import { LRUCache } from 'lru-cache';
import type { TokenPricedModel } from '#catalogue';
import { limitEntries } from '#kernel';
import { SampleRegistry } from '../../sample-registry.ts';
import { MAX_SAMPLES, type Percentile, SampleWindow } from '../../sample-window.ts';
import { StartOrder } from '../../start-order.ts';
import type { OutputLengths } from '../chat/chat-quote.ts';

/** Minimum tokens of an initial hold. Most completions are shorter, so their hold need not be extended. */
export const MIN_INITIAL_TOKENS = 512;
/** From this number of samples on, statistics are used: those of the model, or of the payer with the model. */
const MIN_SAMPLES = 20;
/** Percentiles of the output lengths: of the initial hold, of a usual long completion, and of a long completion. */
const INITIAL_PERCENTILE = 75;
const LONG_PERCENTILE = 90;
const RESERVED_PERCENTILE = 95;
/** Usual long completion of a model without statistics whose entry in the catalogue has no such length, in tokens. */
const DEFAULT_LONG_TOKENS = 2_000;
/** Part of the usual long completion that the initial hold of a model without statistics covers. */
const UNMEASURED_INITIAL_SHARE = 0.75;
/** Maximum number of pairs of a model and a payer whose samples are retained. */
const MAX_PAYERS = 20_000;
/** Upper limit of the ratio of the provider's token count to the gateway's. */
const MAX_RATIO = 2;
/** Minimum number of tokens for a meaningful comparison of tokenizers. */
const MIN_RATIO_TOKENS = 64;
/** Weight of a new ratio that is lower than the current one. A higher ratio applies at once. */
const NEWEST_WEIGHT = 0.2;

/**
 * While completions that started earlier run, the lengths of at most so many later ones are not counted yet: of many
 * that start together, the short ones end first.
 */
const MAX_WAITING_SAMPLES = 2 * MAX_SAMPLES;

type MeasuredModel = Pick<TokenPricedModel, 'id' | 'maxOutput' | 'longOutput'>;

/** The length of a completion that has ended. */
export interface OutputLength {
  /** Output tokens per choice. */
  readonly tokens: number;
  /** The completion ended early for lack of money. It would have been at least this long. */
  readonly isTruncated: boolean;
}

interface LengthSample {
  readonly payer: string;
  readonly tokens: number;
}

export class OutputLengthStats {
  private readonly byPayer = new LRUCache<string, SampleWindow>(limitEntries(MAX_PAYERS));
  private readonly started = new Map<string, StartOrder<LengthSample>>();
  private readonly ratios = new Map<string, number>();

  /** @param samples the lengths by model, which processes share */
  constructor(private readonly samples = new SampleRegistry()) {}

  /**
   * Records the start of a completion. Its end must be recorded with the returned function, without a length if it
   * failed. Of truncated completions only long ones count: a short one shows nothing, and without the long ones the
   * statistics would become too low while money is short.
   */
  start(model: MeasuredModel, payer: string): (length?: OutputLength) => void {
    const end = this.ensureOrder(model.id).start();
    return (length) => {
      const isTypical = length && (!length.isTruncated || length.tokens > this.getLengths(model, payer).long);
      end(isTypical ? { payer, tokens: length.tokens } : undefined);
    };
  }

  private ensureOrder(model: string): StartOrder<LengthSample> {
    const order =
      this.started.get(model) ?? new StartOrder(MAX_WAITING_SAMPLES, (sample) => this.addSample(model, sample));
    this.started.set(model, order);
    return order;
  }

  private addSample(model: string, { payer, tokens }: LengthSample): void {
    this.samples.record(toSampleName(model), tokens);
    const ofPayer = this.byPayer.get(`${model} ${payer}`) ?? new SampleWindow();
    if (ofPayer.count === 0) this.byPayer.set(`${model} ${payer}`, ofPayer);
    ofPayer.add(tokens);
  }

  /** Returns the output lengths per choice that can be expected for a completion of this payer. */
  getLengths({ id, maxOutput, longOutput = DEFAULT_LONG_TOKENS }: MeasuredModel, payer: string): OutputLengths {
    const [ofModel, ofPayer] = [this.samples.get(toSampleName(id)), this.byPayer.get(`${id} ${payer}`)].map(
      (lengths) => (lengths && lengths.count >= MIN_SAMPLES ? lengths : undefined),
    );
    const unmeasured = Math.min(longOutput, maxOutput);
    const typical =
      (ofPayer ?? ofModel)?.getPercentile(INITIAL_PERCENTILE) ?? Math.ceil(unmeasured * UNMEASURED_INITIAL_SHARE);
    const initial = Math.min(Math.max(typical, MIN_INITIAL_TOKENS), maxOutput);
    const getLong = (percentile: Percentile) =>
      Math.min(Math.max(ofModel?.getPercentile(percentile) ?? unmeasured, initial), maxOutput);
    return { initial, long: getLong(LONG_PERCENTILE), reserved: getLong(RESERVED_PERCENTILE) };
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

function toSampleName(model: string): string {
  return `output tokens of ${model}`;
}
