/** What all paid calls have in common: one endpoint is asked after the other, and what comes of it is charged once. */
import type { Endpoint, Model, PriceList } from '#catalogue';
import { type Attempt, addedUsage, type Charge, type Fee, NO_USAGE, priceOf, type Usage, withFees } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { UpstreamFailure } from '../failures.ts';
import { Pulses } from '../routing/pulses.ts';
import { asFailure, MAX_TRIES, withAttempts } from './attempts.ts';
import { type Hold, Holds } from './holds.ts';

/** A hold outlives the longest answer by this much: time to settle it, also when the store is away for a while. */
export const HOLD_MARGIN_MS = 60_000;

/** A call whose money is held. */
export interface PaidCall {
  readonly model: Model;
  /** In the order in which they are asked; at least one. */
  readonly endpoints: readonly Endpoint[];
  readonly priceList: PriceList;
  readonly hold: Hold;
  /** What was used beside the model. */
  readonly fees?: readonly Fee[];
  readonly attempts: Attempt[];
  readonly signal: AbortSignal;
  /** The usage that no upstream reported, counted from the request and from what was delivered. */
  counted(delivered: string): Promise<Usage>;
}

/** An answer and where it comes from. */
export interface Served<A> {
  readonly answer: A;
  readonly endpoint: Endpoint;
  /** When its first byte was there, in milliseconds of `performance.now`. */
  readonly began: number;
}

/** What was used, as far as it is known. */
export interface Outcome {
  readonly endpoint: Endpoint;
  readonly reported: Usage | undefined;
  readonly delivered: string;
  readonly failure?: UpstreamFailure | undefined;
}

/** What calls of one endpoint have used. */
export interface Used {
  readonly usage: Usage;
  readonly calls: number;
  /** Whether a part of it was counted here, because no upstream reported it. */
  readonly estimated: boolean;
}

export const NOTHING: Used = { usage: NO_USAGE, calls: 0, estimated: false };

/** What a request came to. */
export interface Receipt {
  readonly usage: Usage;
  readonly charged: PicoUsd;
  /** The part of it that is for the input. */
  readonly chargedForInput: PicoUsd;
}

export class PaidCalls {
  constructor(
    private readonly holds: Holds,
    private readonly pulses: Pulses,
  ) {}

  /**
   * Asks one endpoint after the other until one answers. What an endpoint was given up for is kept in the attempts. When
   * none answers, the money is given back.
   * @throws UpstreamFailure of the last endpoint
   */
  async ask<A>(call: PaidCall, once: (endpoint: Endpoint) => Promise<A>): Promise<Served<A>> {
    const endpoints = [...call.endpoints];
    for (;;) {
      const endpoint = endpoints.shift() as Endpoint;
      try {
        return await this.askOne(call, endpoint, endpoints.length === 0, () => once(endpoint));
      } catch (error) {
        const failure = asFailure(error);
        if (endpoints.length > 0 && mayFallBack(failure, call.signal)) {
          this.pulses.failed(call.model, endpoint, failure);
          continue;
        }
        await this.release(call, endpoint, failure, failure.delivered);
        throw failure;
      }
    }
  }

  /**
   * Asks the endpoint that has answered before, and no other: a charge is for one. The money stays held, also when it
   * fails.
   * @throws UpstreamFailure
   */
  askAgain<A>(call: PaidCall, endpoint: Endpoint, once: () => Promise<A>): Promise<Served<A>> {
    return this.askOne(call, endpoint, true, once);
  }

  /** The last endpoint is asked again. */
  private async askOne<A>(call: PaidCall, endpoint: Endpoint, last: boolean, once: () => Promise<A>) {
    const asked = performance.now();
    const tries = last ? MAX_TRIES : 1;
    const answer = await withAttempts(endpoint.slug, call.attempts, tries, call.signal, once);
    const began = performance.now();
    this.pulses.answered(call.model, endpoint, began - asked);
    return { answer, endpoint, began };
  }

  /** Gives the money back. What was `delivered` before the failure, be it nothing but the input, the house bears. */
  async release(call: PaidCall, endpoint: Endpoint, failure: UpstreamFailure, delivered?: string): Promise<void> {
    const used = delivered === undefined ? NOTHING : await usedBy(call, undefined, delivered);
    return this.releaseUsed(call, endpoint, failure, used);
  }

  /** Gives the money back. What was used all the same, of the model and beside it, the house bears. */
  async releaseUsed(call: PaidCall, endpoint: Endpoint, failure: UpstreamFailure, used: Used): Promise<void> {
    this.pulses.failed(call.model, endpoint, failure);
    const anything = used.calls > 0 || (call.fees?.length ?? 0) > 0;
    const absorbed = anything ? chargeFor(call, endpoint, used, failure) : undefined;
    await this.holds.release(call.hold, failure, call.attempts, absorbed);
  }

  async settle(call: PaidCall, { endpoint, reported, delivered, failure }: Outcome): Promise<Receipt> {
    return this.settleUsed(call, endpoint, await usedBy(call, reported, delivered), failure);
  }

  /** Charges what several calls of an endpoint have used. */
  async settleUsed(call: PaidCall, endpoint: Endpoint, used: Used, failure?: UpstreamFailure): Promise<Receipt> {
    const { usage, calls } = used;
    const charged = await this.holds.settle(call.hold, chargeFor(call, endpoint, used, failure));
    const { price } = priceOf({ ...usage, output: 0, reasoning: 0 }, endpoint.rates, calls);
    return { usage, charged, chargedForInput: money.least(price, charged) };
  }
}

/**
 * Another endpoint may do what this one could not, as long as nothing of an answer is there; also where the request is
 * at fault, if that is because this endpoint does not have what it names.
 */
function mayFallBack({ code, status, delivered }: UpstreamFailure, signal: AbortSignal): boolean {
  return !signal.aborted && delivered === undefined && (code !== 'invalid_request' || status === 404);
}

/** What one call has used: as reported, or else counted from what was delivered. */
export async function usedBy(
  call: Pick<PaidCall, 'counted'>,
  reported: Usage | undefined,
  delivered: string,
): Promise<Used> {
  return { usage: reported ?? (await call.counted(delivered)), calls: 1, estimated: reported === undefined };
}

export function addedUse(a: Used, b: Used): Used {
  return { usage: addedUsage(a.usage, b.usage), calls: a.calls + b.calls, estimated: a.estimated || b.estimated };
}

function chargeFor(call: PaidCall, endpoint: Endpoint, used: Used, failure: UpstreamFailure | undefined): Charge {
  const { usage, calls, estimated } = used;
  const { fees = [] } = call;
  const { cost, price } = withFees(priceOf(usage, endpoint.rates, calls), fees);
  return {
    price: money.toJson(price),
    cost: money.toJson(cost),
    provider: endpoint.slug,
    priceList: call.priceList.version,
    ...(fees.length > 0 ? { fees } : {}),
    usage,
    ...(calls === 1 ? {} : { calls }),
    estimated,
    attempts: call.attempts,
    ...(failure ? { errorCode: failure.code } : {}),
  };
}
