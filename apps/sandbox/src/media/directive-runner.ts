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
   * @returns undefined if the request gets no response: its connection was closed, or stays open
   * @throws HttpError if the fault is an error response
   * @throws InvalidDirectiveError
   */
  async runDirective(call: Call, text: string): Promise<AppliedDirective | undefined> {
    const directive = parseDirective(text);
    const fault = this.faults.selectFault(directive, this.provider);
    if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
    // `error` is an error event within a started stream. Media responses have no such event, so the request fails with
    // status 500.
    const outright = fault === 'error' ? '500' : fault;
    return applyFault(outright, call, this.createFaultError) ? undefined : { directive, fault };
  }
}

const MAX_DIRECTIVE_BYTES = 64 * 1024;

/**
 * Returns the text of a file from its directive on, decoded from at most 64 KiB. Returns an empty string if the file
 * has no directive.
 */
export function findDirectiveText(bytes: Buffer): string {
  const at = bytes.indexOf('[[sandbox');
  return at < 0 ? '' : bytes.toString('utf8', at, at + MAX_DIRECTIVE_BYTES);
}

/** Whether the fault simulates content that the provider's rules forbid. */
export function isForbidden({ fault }: AppliedDirective): boolean {
  return fault === 'policy' || fault === 'policy_billed';
}
