import { setTimeout as delay } from 'node:timers/promises';
import type { Attempt, Tariff } from '#domain';
import { asFailure, type FailureCode, type UpstreamFailure } from '../failures.ts';

/** Calls at most of one endpoint, the first included. */
export const MAX_TRIES = 3;
const FIRST_WAIT_MS = 50;
/** An upstream that asks for a longer pause is not tried again. */
const LONGEST_WAIT_MS = 2_000;

/** Failures that a retry may fix. A timeout is not among them: the caller has waited long enough. */
const RETRYABLE: ReadonlySet<FailureCode> = new Set(['upstream_error', 'upstream_unavailable', 'rate_limited']);

/**
 * Makes a call, retries it when it fails before the first byte, and records each try in `attempts`.
 * @throws UpstreamFailure of the last try
 */
export async function withAttempts<T>(
  { of: model, provider, creditor }: Tariff,
  attempts: Attempt[],
  { tries, signal }: { readonly tries: number; readonly signal: AbortSignal },
  call: () => Promise<T>,
): Promise<T> {
  for (let left = tries; ; ) {
    left--;
    const started = performance.now();
    try {
      const answer = await call();
      attempts.push({ provider, creditor, model, outcome: 'ok', milliseconds: since(started) });
      return answer;
    } catch (error) {
      const failure = asFailure(error);
      attempts.push({ provider, creditor, model, ...asTried(failure), milliseconds: since(started) });
      const wait = Math.max(FIRST_WAIT_MS * 2 ** (tries - left), (failure.retryAfterSeconds ?? 0) * 1_000);
      const mayHelp = RETRYABLE.has(failure.code) && failure.delivered === undefined && wait <= LONGEST_WAIT_MS;
      if (!mayHelp || left === 0 || signal.aborted) throw failure;
      await delay(wait, undefined, { signal }).catch(() => {}); // an abort shows in the next call
    }
  }
}

function asTried({ code, status, vendorId }: UpstreamFailure): Pick<Attempt, 'vendorId' | 'outcome' | 'status'> {
  return {
    ...(vendorId === undefined ? {} : { vendorId }),
    outcome: code,
    ...(status === undefined ? {} : { status }),
  };
}

function since(started: number): number {
  return Math.round(performance.now() - started);
}
