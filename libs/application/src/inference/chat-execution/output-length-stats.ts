/** How long the answers of models are, as this process has seen: what is held at first for one that has no limit follows from it. */
import { LRUCache } from 'lru-cache';

/** Nothing less is held at first: most answers are shorter, so that they cost no further append. */
export const MIN_INITIAL_TOKENS = 512;
/** Answers that are remembered of each model, and of each model and payer. */
const REMEMBERED = 128;
/** From so many answers on a payer's own say more than everybody's. */
const ENOUGH = 20;
/** Of a hundred answers so many are no longer than what is held at first. */
const PERCENTILE = 75;
/** After so many further answers the percentile is taken anew: it takes longer than to note one. */
const TAKEN_ANEW = 16;
/** Models with a payer of each. */
const MAX_PAYERS = 20_000;
/** The counts of our tokenizer and a vendor's differ by no more than this. */
const MAX_RATIO = 2;
/** Fewer tokens say nothing about tokenizers. */
const COMPARED_TOKENS = 64;
/** Weight of a count that is lower than those before. */
const NEWEST = 0.2;

class Lengths {
  private readonly taken: number[] = [];
  private next = 0;
  private added = 0;
  private percentile = 0;

  get count(): number {
    return this.taken.length;
  }

  add(tokens: number): void {
    this.taken[this.next] = tokens;
    this.next = (this.next + 1) % REMEMBERED;
    this.added++;
    if (this.added > ENOUGH && this.added % TAKEN_ANEW !== 0) return;
    this.percentile = this.taken.toSorted((a, b) => a - b)[Math.floor((this.count * PERCENTILE) / 100)] ?? 0;
  }

  get usual(): number {
    return this.percentile;
  }
}

export class OutputLengthStats {
  private readonly ofModels = new Map<string, Lengths>();
  private readonly ofPayers = new LRUCache<string, Lengths>({ max: MAX_PAYERS });
  private readonly ratios = new Map<string, number>();

  /** An answer took so many tokens of output. */
  took(model: string, payer: string, tokens: number): void {
    add(this.ofModels, model, tokens);
    add(this.ofPayers, `${model} ${payer}`, tokens);
  }

  /** How many tokens of output are held for at first. */
  first(model: string, payer: string): number {
    const own = this.ofPayers.get(`${model} ${payer}`);
    const lengths = own && own.count >= ENOUGH ? own : this.ofModels.get(model);
    return Math.max(lengths?.usual ?? 0, MIN_INITIAL_TOKENS);
  }

  /** The vendor counts `reported` tokens where we count `counted`. */
  compared(model: string, counted: number, reported: number): void {
    if (counted < COMPARED_TOKENS) return;
    const ratio = Math.min(Math.max(reported / counted, 1), MAX_RATIO);
    const known = this.ratios.get(model) ?? 1;
    this.ratios.set(model, Math.max(ratio, known + NEWEST * (ratio - known)));
  }

  /** How many tokens a vendor makes of one that we count, at most. */
  ratio(model: string): number {
    return this.ratios.get(model) ?? 1;
  }
}

/** Both kinds of maps. */
interface Known {
  get(name: string): Lengths | undefined;
  set(name: string, lengths: Lengths): unknown;
}

function add(known: Known, name: string, tokens: number): void {
  const lengths = known.get(name) ?? new Lengths();
  if (lengths.count === 0) known.set(name, lengths);
  lengths.add(tokens);
}
