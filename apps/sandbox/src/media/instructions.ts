/** What a directive has a vendor of media do before it answers. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Directive, type Fault, readDirective } from '../provider/directive.ts';
import { applyFault, FaultCounter, type Refused } from '../provider/faults.ts';
import type { Call, Refusal } from '../router.ts';

export interface AppliedDirective {
  readonly directive: Directive;
  readonly fault: Fault | undefined;
}

export class Instructions {
  private readonly faults = new FaultCounter();

  constructor(
    private readonly vendor: string,
    private readonly refusalOf: (refused: Refused) => Refusal,
  ) {}

  /**
   * Waits and fails as the words of a request say.
   * @returns undefined where the request has come to its end
   * @throws Refusal, MisunderstoodDirective
   */
  async follow(call: Call, words: string): Promise<AppliedDirective | undefined> {
    const directive = readDirective(words);
    const fault = this.faults.next(directive, this.vendor);
    if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
    const outright = fault === 'error' ? '500' : fault; // an answer in one piece has no middle for an error
    return applyFault(outright, call, this.refusalOf) ? undefined : { directive, fault };
  }
}

const LONGEST_DIRECTIVE = 64 * 1024;

/** A directive among the bytes of a file, with what follows it; nothing where there is none. */
export function wordsAmong(bytes: Buffer): string {
  const at = bytes.indexOf('[[sandbox');
  return at < 0 ? '' : bytes.toString('utf8', at, at + LONGEST_DIRECTIVE);
}

/** Whether a vendor's rules forbid the content. */
export function isForbidden({ fault }: AppliedDirective): boolean {
  return fault === 'policy' || fault === 'policy_billed';
}
