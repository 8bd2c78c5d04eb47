/** Selects the fault of a request, and applies faults that fail the request. */
import type { Call, HttpError } from '../router.ts';
import type { Directive, Fault } from './directive.ts';

/** Maximum number of counted ids; beyond it the oldest is evicted. */
const MAX_IDS = 100_000;

/** Counts the calls with a directive's `id`, so that a fault can hit only the first calls. */
export class FaultCounter {
  private readonly calls = new Map<string, number>();

  /**
   * Returns the fault that hits this call to a provider; undefined for none. Counts the call if the provider and the
   * round match, and the directive limits the fault to the first calls.
   * @param round from 1, in a conversation that calls tools
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

/** Error responses that a directive can request. Each provider sends them in its own format. */
export type ErrorFault = '400' | '429' | '500' | 'overloaded';

/**
 * Applies faults that deliver nothing and so cost nothing.
 * @returns whether the request gets no response
 * @throws HttpError if the fault is an error response
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
      return true; // never responds: the connection stays open until the client disconnects
    case 'refuse':
      request.socket.destroy();
      return true;
    default:
      return false;
  }
}
