/** One request while it is served: its hold, the endpoints that it has called, and what it has used. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Endpoint } from '#catalogue';
import {
  type Attempt,
  addUsage,
  type CallUsage,
  type Charge,
  type ChargeItem,
  countAffordableUnits,
  getQuantity,
  NO_USAGE,
  type Tariff,
  toCharge,
  toChargeItem,
  toUsageJson,
  UnpricedUnitError,
  type Usage,
} from '#domain';
import { money, type PicoUsd, toPicoUsd, ZERO_USD } from '#kernel';
import { toUpstreamError, UpstreamError } from '../errors.ts';
import { breakDownCharge, calculateInputCost } from './charge-breakdown.ts';
import type { Deadline, Funds, Order, PurchaseObserver, Receipt } from './order.ts';
import type { Hold, HoldExtensionRequest, Payer } from './payer.ts';
import { canFallBack, isRetryable, toAttemptOutcome } from './retry-policy.ts';
import type { CallResult, EndpointResponse, StreamResult, UpstreamCall } from './upstream-call.ts';

/** Calls at most of one endpoint, the first included. */
const MAX_ATTEMPTS = 3;
const MIN_BACKOFF_MS = 50;
/** An upstream that asks for a longer pause is not tried again. */
const MAX_BACKOFF_MS = 2_000;

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
  endedBy: UpstreamError | undefined;
  private readonly payer: Payer;
  private canStop = false;
  private abandonDelayMs = 0;
  private abandonedBy: UpstreamError | undefined;

  constructor(
    readonly order: Order,
    funds: Funds,
    private readonly deadline: Deadline,
    private readonly observer: PurchaseObserver,
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
   * @param abandonDelayMs how long it is read on when nobody waits for it, to see what was under way
   */
  markStreaming(endpoint: Endpoint | undefined, abandonDelayMs = 0): void {
    this.canStop = endpoint?.onDisconnect === 'stops';
    this.abandonDelayMs = abandonDelayMs;
    if (this.abandonedBy) this.abandon(this.abandonedBy);
  }

  /** Nobody waits for the answer any more. What has not begun, or goes on anyway, is read on. */
  abandon(failure: UpstreamError): void {
    this.abandonedBy = failure;
    if (!this.canStop) return;
    if (this.abandonDelayMs === 0) this.abort(failure);
    else setTimeout(() => this.abort(failure), this.abandonDelayMs).unref();
  }

  /** Ends the calls of upstreams; what they have made by then is billed. */
  abort(failure: UpstreamError): void {
    this.deadline.abort(failure);
  }

  /**
   * Holds more, up to the most that the sale can cost, as far as there is more to be had.
   * @throws UpstreamError `hold_ended` when nothing is held any more
   */
  async extendHold({
    minAmount,
    targetAmount,
  }: HoldExtensionRequest): Promise<'extended' | 'retry_later' | 'exhausted'> {
    const extended = await this.payer.extend(this.hold, {
      minAmount,
      targetAmount: money.min(targetAmount, this.order.maxPrice),
    });
    if (extended === 'exhausted' || extended === 'retry_later') return extended;
    if (extended === 'expired') throw new UpstreamError('hold_ended', 'The money for the answer is not held any more');
    if (extended.amount > this.hold.amount) this.hold = extended; // of two answers the later may come first
    return 'extended';
  }

  /**
   * What came behind the last count may be more than is held, where the hold was taken in parts. What there is no money for is
   * the loss of the house.
   */
  async extendHoldToPrice({ price }: Charge): Promise<void> {
    const { amount } = this.hold;
    const due = money.parseJsonAmount(price);
    if (due <= amount) return;
    await this.extendHold({ minAmount: toPicoUsd(amount + 1n), targetAmount: due }).catch(() => {}); // shows when it is settled
  }

  /**
   * Asks one endpoint after the other until one answers. What an endpoint was given up for is kept in the attempts.
   * @throws UpstreamError of the last endpoint
   */
  async call<A>(call: UpstreamCall<A>): Promise<EndpointResponse<A>> {
    const endpoints = [...this.order.endpoints];
    for (;;) {
      const endpoint = endpoints.shift() as Endpoint;
      try {
        return await this.callEndpoint(call, endpoint, endpoints.length === 0);
      } catch (error) {
        const failure = toUpstreamError(error);
        if (endpoints.length === 0 || !canFallBack(failure, this.signal)) throw failure;
        this.observer.health.recordFailure(this.order.model, endpoint, failure);
      }
    }
  }

  /** Asks the endpoint that has answered before, and no other: a charge is for one. @throws UpstreamError */
  callSameEndpoint<A>(call: UpstreamCall<A>, endpoint: Endpoint): Promise<EndpointResponse<A>> {
    return this.callEndpoint(call, endpoint, true);
  }

  /** The last endpoint is asked again. What it delivered before it failed is used, and is billed. */
  private async callEndpoint<A>(
    call: UpstreamCall<A>,
    endpoint: Endpoint,
    isLastEndpoint: boolean,
  ): Promise<EndpointResponse<A>> {
    this.endpoint = endpoint;
    const sentAtMs = performance.now();
    try {
      const maxAttempts = isLastEndpoint && !call.isSingleUse ? MAX_ATTEMPTS : 1;
      const response = await this.callWithRetries(endpoint.tariff, maxAttempts, () => call.send(endpoint));
      const firstByteAtMs = performance.now();
      this.observer.health.recordFirstByte(this.order.model, endpoint, firstByteAtMs - sentAtMs);
      return { response, endpoint, sentAtMs, firstByteAtMs };
    } catch (error) {
      await this.billFailedCall(call, endpoint, toUpstreamError(error));
      throw error;
    }
  }

  /** What came of a call that failed may be on the vendor's invoice. */
  private async billFailedCall(
    call: Pick<UpstreamCall<unknown>, 'estimateUsage' | 'getLostUsage'>,
    endpoint: Endpoint,
    { code, deliveredText, usage, vendorId }: UpstreamError,
  ): Promise<void> {
    if (deliveredText === undefined && usage === undefined) return;
    if (!call.getLostUsage)
      return void (await this.billCall(call, { usage, getDeliveredText: () => deliveredText ?? '', vendorId }));
    const id = vendorId === undefined ? {} : { vendorId };
    this.bill(endpoint.tariff, {
      ...call.getLostUsage(endpoint, usage),
      ...id,
      estimated: usage === undefined,
      absorbed: code,
    });
  }

  /**
   * Makes a call, retries it when it fails before the first byte, and records each try.
   * @throws UpstreamError of the last try
   */
  private async callWithRetries<A>(
    { of: model, provider, creditor }: Tariff,
    maxAttempts: number,
    call: () => Promise<A>,
  ): Promise<A> {
    const { attempts, signal } = this;
    for (let remaining = maxAttempts; ; ) {
      remaining--;
      const started = performance.now();
      try {
        const response = await call();
        attempts.push({ provider, creditor, model, outcome: 'ok', milliseconds: getElapsedMs(started) });
        return response;
      } catch (error) {
        const failure = toUpstreamError(error);
        attempts.push({ provider, creditor, model, ...toAttemptOutcome(failure), milliseconds: getElapsedMs(started) });
        const wait = Math.max(
          MIN_BACKOFF_MS * 2 ** (maxAttempts - remaining),
          (failure.retryAfterSeconds ?? 0) * 1_000,
        );
        if (!isRetryable(failure) || wait > MAX_BACKOFF_MS || remaining === 0 || signal.aborted) throw failure;
        await delay(wait, undefined, { signal }).catch(() => {}); // an abort shows in the next call
      }
    }
  }

  /** An answer that was expected whole is none: the try that made it has failed. Returns the failure. */
  markLastAttemptFailed(failure: UpstreamError): UpstreamError {
    const last = this.attempts.pop();
    if (last) this.attempts.push({ ...last, ...toAttemptOutcome(failure) });
    return failure;
  }

  /** Bills a call of the model: as reported, or else counted from what was delivered. */
  async billCall(
    call: Pick<UpstreamCall<unknown>, 'estimateUsage'>,
    { usage: reported, getDeliveredText: delivered, vendorId }: CallResult,
  ): Promise<Usage> {
    const { tariff } = this.endpoint as Endpoint;
    const usage = { ...(reported ?? (await call.estimateUsage(delivered()))), request: 1 };
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
    call: Pick<UpstreamCall<unknown>, 'estimateUsage'>,
    { response, endpoint, sentAtMs, firstByteAtMs }: EndpointResponse<StreamResult>,
  ): Promise<Usage> {
    const ended = performance.now();
    const result = {
      usage: response.usage(),
      getDeliveredText: () => response.getDeliveredText(),
      vendorId: response.vendorId(),
    };
    const reasoningTokens = this.signal.aborted
      ? this.observer.health.estimateReasoningTokens(response, this.order.model, endpoint)
      : 0;
    const estimateUsage = async (text: string) =>
      this.addReasoning(await call.estimateUsage(text), reasoningTokens, endpoint);
    const usage = await this.billCall(reasoningTokens > 0 ? { estimateUsage } : call, result);
    const from = usage.reasoning ? sentAtMs : firstByteAtMs; // what was thought may have been made before the first byte
    this.observer.health.recordDelivery(this.order.model, endpoint, getQuantity('output', usage), ended - from);
    return usage;
  }

  private addReasoning(usage: Usage, reasoningTokens: number, { tariff }: Endpoint): Usage {
    const affordableTokens = countAffordableUnits(
      this.remaining,
      { unit: 'output', beside: { ...usage, request: 1 } },
      tariff.prices,
    );
    return { ...usage, reasoning: Math.min(reasoningTokens, Math.max(affordableTokens, 0)) };
  }

  /** Bills what the endpoint has made that is not paid by tokens alone: images, seconds, characters. */
  billUsage(use: CallUsage): void {
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
  reportImplausible(problem: string): void {
    this.observer.reportError(problem, undefined);
  }

  /** What the hold still has when all that was used is paid; below zero when it was more than it could be. */
  get remaining(): PicoUsd {
    return this.items.reduce(
      (remaining, { price }) => money.subtract(remaining, money.parseJsonAmount(price)),
      this.hold.amount,
    );
  }

  /** All that was used; undefined for nothing. */
  createCharge(failure?: UpstreamError): Charge | undefined {
    const { items, attempts, order } = this;
    if (items.length === 0) return undefined;
    const errorCode = failure ? { errorCode: failure.code } : {};
    return toCharge(items, { priceList: order.priceList.version, attempts, ...errorCode });
  }

  createReceipt(charged: PicoUsd): Receipt {
    return { usage: this.usage, charged, parts: breakDownCharge(charged, this.items, this.inputCost) };
  }

  /** What was not to be expected and has no price is not given away: the whole hold pays for it, and audits show it. */
  private bill(tariff: Tariff, use: CallUsage): void {
    try {
      this.items.push(toChargeItem(tariff, use));
    } catch (error) {
      if (!(error instanceof UnpricedUnitError)) throw error;
      this.observer.reportError(`a use of ${tariff.of} by ${tariff.provider} has no price`, error);
      const unpriced = toChargeItem(tariff, { ...use, usage: NO_USAGE });
      const price = money.toJsonAmount(this.hold.amount);
      this.items.push({ ...unpriced, usage: toUsageJson(use.usage), price });
    }
  }
}

function getElapsedMs(started: number): number {
  return Math.round(performance.now() - started);
}
