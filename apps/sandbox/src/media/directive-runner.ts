/** Applies a directive before a media provider responds. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Directive, type Fault, parseDirective } from '../provider/directive.ts';
import { applyFault, type ErrorFault, FaultCounter } from '../provider/faults.ts';
import type { Call, HttpError } from '../router.ts';

export interface AppliedDirective {
  readonly directive: Directive;
  readonly fault: Fault | undefined;
}

export class DirectiveRunner {
  private readonly faults = new FaultCounter();

  constructor(
    private readonly provider: string,
    private readonly createFaultError: (fault: ErrorFault) => HttpError,
  ) {}

  /**
   * Waits for the latency and applies faults that fail the request.
   * @returns undefined if the request is finished
   * @throws HttpError for the fault of an error status
   * @throws InvalidDirectiveError
   */
  async runDirective(call: Call, text: string): Promise<AppliedDirective | undefined> {
    const directive = parseDirective(text);
    const fault = this.faults.selectFault(directive, this.provider);
    if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
    const outright = fault === 'error' ? '500' : fault; // a media response cannot report an error after its start
    return applyFault(outright, call, this.createFaultError) ? undefined : { directive, fault };
  }
}

const MAX_DIRECTIVE_BYTES = 64 * 1024;

/** Returns the bytes of a file from its directive on, at most 64 KiB; an empty string if it has no directive. */
export function findDirectiveText(bytes: Buffer): string {
  const at = bytes.indexOf('[[sandbox');
  return at < 0 ? '' : bytes.toString('utf8', at, at + MAX_DIRECTIVE_BYTES);
}

/** Whether the fault simulates content that the provider's rules forbid. */
export function isForbidden({ fault }: AppliedDirective): boolean {
  return fault === 'policy' || fault === 'policy_billed';
}
