/** One request while it is served: its hold, the endpoints that it has called, and what it has used. */
import { setTimeout as delay } from 'node:timers/promises';
import type { AnyModel, Endpoint, PriceList } from '#catalogue';
import {
  type Attempt,
  addUsage,
  type CallUsage,
  type Charge,
  type ChargeItem,
  countAffordableUnits,
  getQuantity,
  NO_USAGE,
  type PartialHold,
  type Query,
  type Tariff,
  toCharge,
  toChargeItem,
  toUsageJson,
  UnpricedUnitError,
  type Usage,
} from '#domain';
import { money, type PicoUsd, toPicoUsd, ZERO_USD } from '#kernel';
import { toUpstreamError, UpstreamError } from '../errors.ts';
import type { EndpointHealth } from '../routing/endpoint-health.ts';
import { breakDownCharge, type ChargeBreakdown, calculateInputCost } from './charge-breakdown.ts';
import type { Hold, HoldExtensionRequest, Payer } from './payer.ts';
import { canFallBack, isRetryable, toAttemptOutcome } from './retry-policy.ts';
import type { CallResult, EndpointResponse, StreamResult, UpstreamCall } from './upstream-call.ts';

/** Calls at most of one endpoint, the first included. */
const MAX_TRIES = 3;
const FIRST_WAIT_MS = 50;
/** An upstream that asks for a longer pause is not tried again. */
const LONGEST_WAIT_MS = 2_000;

/** What is about to be sold: the endpoints that may serve it, and what it may cost. */
export interface Order {
  /** One request, one charge: the id of the request, and of its hold. */
  readonly id: string;
  readonly query: Query;
  readonly model: Pick<AnyModel, 'id'>;
  /** In the order in which they are asked; at least one. */
  readonly endpoints: readonly Endpoint[];
  readonly priceList: PriceList;
  readonly atLeast: PicoUsd;
  readonly atMost: PicoUsd;
  /** How much of it is held at first; all of it where this is left out. */
  readonly part?: PartialHold | undefined;
}

/** The time that a request has. */
export interface Deadline {
  /** Aborts when it has taken too long, or must be cut short; its reason is an `UpstreamError`. */
  readonly signal: AbortSignal;
  cutShort(failure: UpstreamError): void;
}

/** Who pays, and what is held of it. */
export interface Funds {
  readonly payer: Payer;
  readonly hold: Hold;
}

/** Receives how endpoints perform, and what should not happen. */
export interface PurchaseObserver {
  readonly health: EndpointHealth;
  readonly alarm: (problem: string, error: unknown) => void;
}

/** The result of a request in money. */
export interface Receipt {
  readonly usage: Usage;
  readonly charged: PicoUsd;
  readonly parts: ChargeBreakdown;
}

/** Of a request that cost its payer nothing. */
export const EMPTY_RECEIPT: Receipt = {
  usage: NO_USAGE,
  charged: ZERO_USD,
  parts: breakDownCharge(ZERO_USD, [], ZERO_USD),
};

export class Purchase {
  readonly attempts: Attempt[] = [];
  /** The endpoint that was asked last. */
  endpoint: Endpoint | undefined;
  /** Of all calls together. */
  usage: Usage = NO_USAGE;
  private readonly items: ChargeItem[] = [];
  /** What the vendors take for the input of all calls. */
  private inputCost = ZERO_USD;

  /** All that is held, also what was added since it was taken. */
  hold: Hold;
  /** What ended an answer early that is charged nevertheless. */
  cutBy: UpstreamError | undefined;
  private readonly payer: Payer;
  private canStop = false;
  private momentMs = 0;
  private abandoned: UpstreamError | undefined;

  constructor(
    readonly sale: Order,
    funds: Funds,
    private readonly deadline: Deadline,
    private readonly watch: PurchaseObserver,
  ) {
    this.hold = funds.hold;
    this.payer = funds.payer;
  }

  get signal(): AbortSignal {
    return this.deadline.signal;
  }

  /** Who pays, the same for all its requests. */
  get payerId(): string {
    return this.payer.id;
  }

  /**
   * An answer is coming piece by piece: it can be cut short where its vendor stops then, and sends no invoice for the rest.
   * @param endpoint undefined once it has come: what follows may be invoiced in any case
   * @param momentMs how long it is read on when nobody waits for it, to see what was under way
   */
  generating(endpoint: Endpoint | undefined, momentMs = 0): void {
    this.canStop = endpoint?.onDisconnect === 'stops';
    this.momentMs = momentMs;
    if (this.abandoned) this.abandon(this.abandoned);
  }

  /** Nobody waits for the answer any more. What has not begun, or goes on anyway, is read on. */
  abandon(failure: UpstreamError): void {
    this.abandoned = failure;
    if (!this.canStop) return;
    if (this.momentMs === 0) this.cutShort(failure);
    else setTimeout(() => this.cutShort(failure), this.momentMs).unref();
  }

  /** Ends the calls of upstreams; what they have made by then is billed. */
  cutShort(failure: UpstreamError): void {
    this.deadline.cutShort(failure);
  }

  /**
   * Holds more, up to the most that the sale can cost, as far as there is more to be had.
   * @throws UpstreamError `hold_ended` when nothing is held any more
   */
  async grow({ minAmount: atLeast, targetAmount: to }: HoldExtensionRequest): Promise<'grown' | 'not now' | 'no more'> {
    const grown = await this.payer.grow(this.hold, {
      minAmount: atLeast,
      targetAmount: money.min(to, this.sale.atMost),
    });
    if (grown === 'no more' || grown === 'not now') return grown;
    if (grown === 'gone') throw new UpstreamError('hold_ended', 'The money for the answer is not held any more');
    if (grown.amount > this.hold.amount) this.hold = grown; // of two answers the later may come first
    return 'grown';
  }

  /**
   * What came behind the last count may be more than is held, where the hold was taken in parts. What there is no money for is
   * the loss of the house.
   */
  async cover({ price }: Charge): Promise<void> {
    const { amount } = this.hold;
    const due = money.parseJsonAmount(price);
    if (due <= amount) return;
    await this.grow({ minAmount: toPicoUsd(amount + 1n), targetAmount: due }).catch(() => {}); // shows when it is settled
  }

  /**
   * Asks one endpoint after the other until one answers. What an endpoint was given up for is kept in the attempts.
   * @throws UpstreamError of the last endpoint
   */
  async ask<A>(call: UpstreamCall<A>): Promise<EndpointResponse<A>> {
    const endpoints = [...this.sale.endpoints];
    for (;;) {
      const endpoint = endpoints.shift() as Endpoint;
      try {
        return await this.askOne(call, endpoint, endpoints.length === 0);
      } catch (error) {
        const failure = toUpstreamError(error);
        if (endpoints.length === 0 || !canFallBack(failure, this.signal)) throw failure;
        this.watch.health.failed(this.sale.model, endpoint, failure);
      }
    }
  }

  /** Asks the endpoint that has answered before, and no other: a charge is for one. @throws UpstreamError */
  askAgain<A>(call: UpstreamCall<A>, endpoint: Endpoint): Promise<EndpointResponse<A>> {
    return this.askOne(call, endpoint, true);
  }

  /** The last endpoint is asked again. What it delivered before it failed is used, and is billed. */
  private async askOne<A>(call: UpstreamCall<A>, endpoint: Endpoint, last: boolean): Promise<EndpointResponse<A>> {
    this.endpoint = endpoint;
    const asked = performance.now();
    try {
      const tries = last && !call.isOnce ? MAX_TRIES : 1;
      const answer = await this.tried(endpoint.tariff, tries, () => call.make(endpoint));
      const began = performance.now();
      this.watch.health.answered(this.sale.model, endpoint, began - asked);
      return { answer, endpoint, asked, began };
    } catch (error) {
      await this.billFailed(call, endpoint, toUpstreamError(error));
      throw error;
    }
  }

  /** What came of a call that failed may be on the vendor's invoice. */
  private async billFailed(
    call: Pick<UpstreamCall<unknown>, 'counted' | 'lost'>,
    endpoint: Endpoint,
    { code, delivered, usage, vendorId }: UpstreamError,
  ): Promise<void> {
    if (delivered === undefined && usage === undefined) return;
    if (!call.lost) return void (await this.billCall(call, { usage, delivered: () => delivered ?? '', vendorId }));
    const id = vendorId === undefined ? {} : { vendorId };
    this.bill(endpoint.tariff, {
      ...call.lost(endpoint, usage),
      ...id,
      estimated: usage === undefined,
      absorbed: code,
    });
  }

  /**
   * Makes a call, retries it when it fails before the first byte, and records each try.
   * @throws UpstreamError of the last try
   */
  private async tried<A>({ of: model, provider, creditor }: Tariff, tries: number, call: () => Promise<A>): Promise<A> {
    const { attempts, signal } = this;
    for (let left = tries; ; ) {
      left--;
      const started = performance.now();
      try {
        const answer = await call();
        attempts.push({ provider, creditor, model, outcome: 'ok', milliseconds: since(started) });
        return answer;
      } catch (error) {
        const failure = toUpstreamError(error);
        attempts.push({ provider, creditor, model, ...toAttemptOutcome(failure), milliseconds: since(started) });
        const wait = Math.max(FIRST_WAIT_MS * 2 ** (tries - left), (failure.retryAfterSeconds ?? 0) * 1_000);
        if (!isRetryable(failure) || wait > LONGEST_WAIT_MS || left === 0 || signal.aborted) throw failure;
        await delay(wait, undefined, { signal }).catch(() => {}); // an abort shows in the next call
      }
    }
  }

  /** An answer that was expected whole is none: the try that made it has failed. Returns the failure. */
  brokenOff(failure: UpstreamError): UpstreamError {
    const last = this.attempts.pop();
    if (last) this.attempts.push({ ...last, ...toAttemptOutcome(failure) });
    return failure;
  }

  /** Bills a call of the model: as reported, or else counted from what was delivered. */
  async billCall(
    call: Pick<UpstreamCall<unknown>, 'counted'>,
    { usage: reported, delivered, vendorId }: CallResult,
  ): Promise<Usage> {
    const { tariff } = this.endpoint as Endpoint;
    const usage = { ...(reported ?? (await call.counted(delivered()))), request: 1 };
    this.bill(tariff, { usage, estimated: reported === undefined, ...(vendorId === undefined ? {} : { vendorId }) });
    this.usage = addUsage(this.usage, usage);
    this.inputCost = money.add(this.inputCost, calculateInputCost(tariff, usage));
    return usage;
  }

  /**
   * As `billCall`, for an answer that came as a stream: how fast it came is what routing sorts by. Of one that was cut short here only
   * its end would have told what was thought unseen: that is taken to have come at the usual speed, as far as it is held for.
   */
  async billStream(
    call: Pick<UpstreamCall<unknown>, 'counted'>,
    { answer, endpoint, asked, began }: EndpointResponse<StreamResult>,
  ): Promise<Usage> {
    const ended = performance.now();
    const made = { usage: answer.usage(), delivered: () => answer.deliveredText(), vendorId: answer.vendorId() };
    const thought = this.signal.aborted ? this.watch.health.thoughtIn(answer, this.sale.model, endpoint) : 0;
    const counted = async (text: string) => this.withThoughts(await call.counted(text), thought, endpoint);
    const usage = await this.billCall(thought > 0 ? { counted } : call, made);
    const from = usage.reasoning ? asked : began; // what was thought may have been made before the first byte
    this.watch.health.delivered(this.sale.model, endpoint, getQuantity('output', usage), ended - from);
    return usage;
  }

  private withThoughts(usage: Usage, thought: number, { tariff }: Endpoint): Usage {
    const most = countAffordableUnits(this.left, { unit: 'output', beside: { ...usage, request: 1 } }, tariff.prices);
    return { ...usage, reasoning: Math.min(thought, Math.max(most, 0)) };
  }

  /** Bills what the endpoint has made that is not paid by tokens alone: images, seconds, characters. */
  billMade(use: CallUsage): void {
    this.bill((this.endpoint as Endpoint).tariff, use);
    if (use.absorbed === undefined) this.usage = addUsage(this.usage, use.usage);
  }

  /**
   * Puts so many searches on the bill, beside the model: some are sold one by one, others by the request that has any.
   * @param vendorId of the answer that they were made for
   */
  billSearches(tariff: Tariff, search: number, vendorId?: string): void {
    const id = vendorId === undefined ? {} : { vendorId };
    const request = this.items.some(({ of }) => of === tariff.of) ? 0 : 1;
    if (search > 0) this.bill(tariff, { usage: { search, request }, estimated: false, beside: true, ...id });
  }

  /** What a vendor says cannot be true. */
  doubt(problem: string): void {
    this.watch.alarm(problem, undefined);
  }

  /** What the hold still has when all that was used is paid; below zero when it was more than it could be. */
  get left(): PicoUsd {
    return this.items.reduce((left, { price }) => money.subtract(left, money.parseJsonAmount(price)), this.hold.amount);
  }

  /** All that was used; undefined for nothing. */
  charge(failure?: UpstreamError): Charge | undefined {
    const { items, attempts, sale } = this;
    if (items.length === 0) return undefined;
    const errorCode = failure ? { errorCode: failure.code } : {};
    return toCharge(items, { priceList: sale.priceList.version, attempts, ...errorCode });
  }

  receipt(charged: PicoUsd): Receipt {
    return { usage: this.usage, charged, parts: breakDownCharge(charged, this.items, this.inputCost) };
  }

  /** What was not to be expected and has no price is not given away: the whole hold pays for it, and audits show it. */
  private bill(tariff: Tariff, use: CallUsage): void {
    try {
      this.items.push(toChargeItem(tariff, use));
    } catch (error) {
      if (!(error instanceof UnpricedUnitError)) throw error;
      this.watch.alarm(`a use of ${tariff.of} by ${tariff.provider} has no price`, error);
      const unpriced = toChargeItem(tariff, { ...use, usage: NO_USAGE });
      const price = money.toJsonAmount(this.hold.amount);
      this.items.push({ ...unpriced, usage: toUsageJson(use.usage), price });
    }
  }
}

function since(started: number): number {
  return Math.round(performance.now() - started);
}
