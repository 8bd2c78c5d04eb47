/** One request while it is served: what it holds, which endpoints it has asked, and what it has used of them. */
import type { Endpoint } from '#catalogue';
import { type Attempt, addedUsage, type Charge, type Fee, NO_USAGE, priceOf, type Usage, withFees } from '#domain';
import { money, type PicoUsd, ZERO } from '#kernel';
import { asFailure, type UpstreamFailure } from '../failures.ts';
import type { Pulses } from '../routing/pulses.ts';
import { MAX_TRIES, withAttempts } from './attempts.ts';
import type { Hold } from './payer.ts';
import type { Sale } from './sale.ts';

/** A call of an upstream, as it can be made of any endpoint. */
export interface UpstreamCall<A> {
  /** @throws UpstreamFailure */
  make(endpoint: Endpoint): Promise<A>;
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

/** What a request came to. */
export interface Receipt {
  readonly usage: Usage;
  readonly charged: PicoUsd;
  /** The part of it that is for the input. */
  readonly chargedForInput: PicoUsd;
}

/** Of a request that cost its payer nothing. */
export const NOTHING: Receipt = { usage: NO_USAGE, charged: ZERO, chargedForInput: ZERO };

export class Purchase {
  readonly attempts: Attempt[] = [];
  /** The endpoint that was asked last. */
  endpoint: Endpoint | undefined;
  /** Of all calls together. */
  usage: Usage = NO_USAGE;
  private readonly fees: Fee[] = [];
  private calls = 0;
  private estimated = false;

  constructor(
    readonly sale: Sale,
    readonly hold: Hold,
    readonly signal: AbortSignal,
    private readonly pulses: Pulses,
  ) {}

  /**
   * Asks one endpoint after the other until one answers. What an endpoint was given up for is kept in the attempts.
   * @throws UpstreamFailure of the last endpoint
   */
  async ask<A>(call: UpstreamCall<A>): Promise<Served<A>> {
    const endpoints = [...this.sale.endpoints];
    for (;;) {
      const endpoint = endpoints.shift() as Endpoint;
      try {
        return await this.askOne(call, endpoint, endpoints.length === 0);
      } catch (error) {
        const failure = asFailure(error);
        if (endpoints.length === 0 || !mayFallBack(failure, this.signal)) throw failure;
        this.pulses.failed(this.sale.model, endpoint, failure);
      }
    }
  }

  /** Asks the endpoint that has answered before, and no other: a charge is for one. @throws UpstreamFailure */
  askAgain<A>(call: UpstreamCall<A>, endpoint: Endpoint): Promise<Served<A>> {
    return this.askOne(call, endpoint, true);
  }

  /** The last endpoint is asked again. What it delivered before it failed is used, and is billed. */
  private async askOne<A>(call: UpstreamCall<A>, endpoint: Endpoint, last: boolean): Promise<Served<A>> {
    this.endpoint = endpoint;
    const asked = performance.now();
    const tries = last ? MAX_TRIES : 1;
    try {
      const answer = await withAttempts(endpoint.slug, this.attempts, tries, this.signal, () => call.make(endpoint));
      const began = performance.now();
      this.pulses.answered(this.sale.model, endpoint, began - asked);
      return { answer, endpoint, began };
    } catch (error) {
      const { delivered } = asFailure(error);
      if (delivered !== undefined) this.bill(await call.counted(delivered), true);
      throw error;
    }
  }

  /** Puts a call of the model on the bill: as reported, or else counted from what was delivered. */
  async billCall(
    call: Pick<UpstreamCall<unknown>, 'counted'>,
    reported: Usage | undefined,
    delivered: () => string,
  ): Promise<Usage> {
    const usage = reported ?? (await call.counted(delivered()));
    this.bill(usage, reported === undefined);
    return usage;
  }

  /** As `billCall`, for an answer that came as a stream: how fast it came is what routing sorts by. */
  async billStream(
    call: Pick<UpstreamCall<unknown>, 'counted'>,
    { answer, endpoint, began }: Served<{ usage(): Usage | undefined; deliveredText(): string }>,
  ): Promise<Usage> {
    const milliseconds = performance.now() - began;
    const usage = await this.billCall(call, answer.usage(), () => answer.deliveredText());
    this.pulses.delivered(this.sale.model, endpoint, usage.output + usage.reasoning, milliseconds);
    return usage;
  }

  /** Puts a service beside the model on the bill. */
  billFee(fee: Fee): void {
    this.fees.push(fee);
  }

  /** What the hold still has when all that was used of an endpoint is paid; below zero when it was more than it could be. */
  left({ rates }: Endpoint): PicoUsd {
    const { price } = withFees(priceOf(this.usage, rates, this.calls), this.fees);
    return money.subtract(this.hold.amount, price);
  }

  /** All that was used; undefined for nothing. */
  charge(failure?: UpstreamFailure): Charge | undefined {
    const { calls, usage, fees, endpoint, estimated, attempts, sale } = this;
    if (!endpoint || (calls === 0 && fees.length === 0)) return undefined;
    const { cost, price } = withFees(priceOf(usage, endpoint.rates, calls), fees);
    return {
      price: money.toJson(price),
      cost: money.toJson(cost),
      provider: endpoint.slug,
      priceList: sale.priceList.version,
      ...(fees.length > 0 ? { fees } : {}),
      usage,
      ...(calls === 1 ? {} : { calls }),
      estimated,
      attempts,
      ...(failure ? { errorCode: failure.code } : {}),
    };
  }

  receipt(charged: PicoUsd): Receipt {
    const { usage, endpoint, calls } = this;
    if (!endpoint) return NOTHING;
    const { price } = priceOf({ ...usage, output: 0, reasoning: 0 }, endpoint.rates, calls);
    return { usage, charged, chargedForInput: money.least(price, charged) };
  }

  private bill(usage: Usage, estimated: boolean): void {
    this.usage = addedUsage(this.usage, usage);
    this.calls++;
    this.estimated ||= estimated;
  }
}

/**
 * Another endpoint may do what this one could not, as long as nothing of an answer is there; also where the request is
 * at fault, if that is because this endpoint does not have what it names.
 */
function mayFallBack({ code, status, delivered }: UpstreamFailure, signal: AbortSignal): boolean {
  return !signal.aborted && delivered === undefined && (code !== 'invalid_request' || status === 404);
}
