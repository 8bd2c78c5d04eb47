import type { Endpoint } from '#catalogue';
import type { Attempt } from '#domain';
import type { Runtime } from '#kernel';
import { toUpstreamError } from '../errors.ts';
import type { Order } from './order.ts';
import { getBackoffMs, toFailedAttempt } from './retry-policy.ts';
import type { UpstreamCall } from './upstream-call.ts';

/** The request for which a call is made. */
interface CallContext {
  readonly order: Pick<Order, 'maxPrice'>;
  /** Gets each attempt. */
  readonly attempts: Attempt[];
  readonly signal: AbortSignal;
  /** Whether the client has disconnected. */
  readonly isAbandoned: boolean;
  readonly runtime: Pick<Runtime, 'now' | 'sleep' | 'chance'>;
}

/**
 * Makes a call, retries it after a failure that a retry may fix, and records each attempt. Not by `retry` of the kernel,
 * because the provider may say how long to wait.
 * @throws UpstreamError of the last attempt
 */
export async function callWithRetries<A>(
  call: UpstreamCall<A>,
  endpoint: Endpoint,
  maxAttempts: number,
  context: CallContext,
): Promise<A> {
  const { order, attempts, signal, runtime } = context;
  const { of: model, provider, creditor } = endpoint.tariff;
  for (let remaining = maxAttempts; ; ) {
    remaining--;
    const startedAtMs = runtime.now();
    const getElapsedMs = () => Math.round(runtime.now() - startedAtMs);
    try {
      const response = await call.send(endpoint);
      attempts.push({ provider, creditor, model, outcome: 'ok', milliseconds: getElapsedMs() });
      return response;
    } catch (error) {
      const failure = toUpstreamError(error);
      const outcome = toFailedAttempt(failure, call, endpoint, order.maxPrice);
      if (!failure.isResting) attempts.push({ provider, creditor, model, milliseconds: getElapsedMs(), ...outcome });
      const wait = getBackoffMs(failure, maxAttempts - remaining - 1, runtime);
      if (wait === undefined || remaining === 0 || signal.aborted) throw failure;
      await runtime.sleep(wait, { signal }); // after an abort the next call fails
      if (context.isAbandoned) throw failure;
    }
  }
}
