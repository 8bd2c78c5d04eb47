import { hash } from 'node:crypto';

/** 2⁴⁸: a number of this many values is exact. */
const VALUES = 2 ** 48;

/**
 * Chance that follows from a text. What happens to a call depends only on the seed and on what the call is about, and
 * not on how many other calls there were. So a plan with fewer steps meets the same faults in the steps that remain.
 */
export class Chance {
  constructor(private readonly seed: string) {}

  /** Returns a number from 0 to below 1. */
  choose(label: string): number {
    return Number.parseInt(hash('md5', `${this.seed}\n${label}`).slice(0, 12), 16) / VALUES;
  }

  isTrue(probability: number, label: string): boolean {
    return this.choose(label) < probability;
  }

  /** Returns a number from `min` to below `max`. */
  between(min: number, max: number, label: string): number {
    return min + this.choose(label) * (max - min);
  }

  /** Returns an integer from `min` to `max`. */
  integer(min: number, max: number, label: string): number {
    return Math.floor(this.between(min, max + 1, label));
  }

  /** Returns a number from `min` to below `max`. One in five is in the upper half of the range in powers of ten. */
  chooseSkewed(min: number, max: number, label: string): number {
    return min * (max / min) ** (this.choose(label) ** 3);
  }

  /** Returns a number from `min` to below `max`. Each power of ten of the range is as likely as any other. */
  chooseScaled(min: number, max: number, label: string): number {
    return min * (max / min) ** this.choose(label);
  }

  pick<T>(values: readonly T[], label: string): T {
    return values[Math.floor(this.choose(label) * values.length)] as T;
  }

  /** Returns a source that has its own values for each text. */
  derive(name: string): Chance {
    return new Chance(`${this.seed}/${name}`);
  }

  /** Returns a function whose results follow from the number of earlier calls. */
  createSequence(name: string): () => number {
    let calls = 0;
    return () => this.choose(`${name} ${calls++}`);
  }

  /** Returns bytes that follow from the text. */
  bytes(length: number, label: string): Uint8Array {
    const blocks = Math.ceil(length / 32);
    const parts = Array.from({ length: blocks }, (_, i) => hash('sha256', `${this.seed}\n${label}\n${i}`, 'buffer'));
    return Buffer.concat(parts).subarray(0, length);
  }
}
