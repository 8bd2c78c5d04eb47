/** What goes wrong on request. Faults of a delivered answer are in delivery.ts. */
import type { Call, HttpError } from '../router.ts';
import type { Directive, Fault } from './directive.ts';

/** So many ids are counted; the oldest is forgotten first. */
const MAX_IDS = 100_000;

/** Counts the calls that carried a directive's `id`, so that a fault can hit the first few and spare the rest. */
export class FaultCounter {
  private readonly calls = new Map<string, number>();

  /**
   * The fault that hits this call to a provider.
   * @param round from 1, of a conversation that calls tools
   */
  selectFault({ fault, faultTimes, faultRound, id, at }: Directive, provider: string, round = 1): Fault | undefined {
    if (at !== undefined && at !== provider) return undefined;
    if (faultRound !== undefined && faultRound !== round) return undefined;
    if (faultTimes === undefined || id === undefined) return fault;
    const calls = (this.calls.get(id) ?? 0) + 1;
    this.calls.set(id, calls);
    if (this.calls.size > MAX_IDS) this.calls.delete(this.calls.keys().next().value as string);
    return calls <= faultTimes ? fault : undefined;
  }
}

/** The refusals that a directive can ask for; each provider words them in its own way. */
export type ErrorFault = '400' | '429' | '500' | 'overloaded';

/**
 * Faults that deliver nothing, and so cost nothing.
 * @returns whether the request has come to its end
 * @throws HttpError
 */
export function applyFault(
  fault: Fault | undefined,
  { request }: Call,
  createFaultError: (errorFault: ErrorFault) => HttpError,
): boolean {
  switch (fault) {
    case '400':
    case '429':
    case '500':
    case 'overloaded':
      throw createFaultError(fault);
    case 'timeout':
      return true; // and never answers: the connection stays open until the client hangs up
    case 'refuse':
      request.socket.destroy();
      return true;
    default:
      return false;
  }
}
