/** The payer as billing sees it: the only interface between the code that sells and the streams that have the money. */
import type { Attempt, Charge, PartialHold, Query } from '#domain';
import type { PicoUsd } from '#kernel';
import type { UpstreamError } from '../errors.ts';

/** An account and the API key that it used for a request; the key is null if it used the `credit_id`. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string | null;
}

/** Returns the caller as the actor that events record. */
export function toActor({ accountId, keyId }: Caller): string {
  return keyId === null ? `account:${accountId}` : `key:${keyId}`;
}

/**
 * Evidence that money is held. Every call to a paid provider requires one, so no call can be made without it. Plain
 * data: a job stores it and may settle it days later, from another process.
 */
export interface Hold {
  readonly holdId: string;
  /** Name of the stream that holds the money, such as `account-…`. It identifies the payer. */
  readonly payer: string;
  readonly amount: PicoUsd;
  /** What the payer could still spend right after the hold was placed. */
  readonly availableAfter: PicoUsd;
  /**
   * Price of the output limit for the provider, if it exceeds the amount: the hold is then extended while the response
   * is generated. Undefined if the provider may use no more than what is held.
   */
  readonly limitPrice?: PicoUsd | undefined;
  /** Price of what is generated before the provider stops; undefined if the speed is unknown. */
  readonly stopPrice?: PicoUsd | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/**
 * Extends a hold to `targetAmount`, or to what is available if that is at least `minAmount`. Both are totals, so
 * repeating the request does not add to the first extension.
 */
export interface HoldExtensionRequest {
  readonly minAmount: PicoUsd;
  readonly targetAmount: PicoUsd;
  /** Price of what is generated before the provider stops, if the speed has become known during the response. */
  readonly stopPrice?: PicoUsd | undefined;
  /** Nothing more is generated for the hold: it is extended to what the response has cost. */
  readonly isFinal?: boolean | undefined;
}

/** Ends the wait of a request. */
export interface WaitSignals {
  /** The reason is an `UpstreamError`. */
  readonly signal?: AbortSignal | undefined;
  /** Resolves when the client of the request has disconnected; undefined if the request is served anyway. */
  readonly disconnected?: Promise<void> | undefined;
}

export interface HoldRequest extends WaitSignals {
  /** Id of the request: a request has one hold and one charge. */
  readonly holdId: string;
  readonly query: Query;
  /** The request as other models may serve it, if the first one cannot. */
  readonly fallbacks?: readonly Query[] | undefined;
  /** Version of the price list of the quote. */
  readonly priceList: string;
  readonly minAmount: PicoUsd;
  readonly maxAmount: PicoUsd;
  /** How much of `maxAmount` is held at first; all of it if undefined. */
  readonly partial?: PartialHold | undefined;
  /** Returns `partial` by the current measurements, for a request that has waited. */
  readonly updatePartial?: (() => PartialHold | undefined) | undefined;
  readonly lifetimeMs: number;
  /** What is known of the `dedupeSeconds` of the API key; undefined if the request does not depend on it. */
  readonly dedupeSeconds?: number | null | undefined;
}

export interface SettleOptions {
  readonly isDelivered: boolean;
  /** What was served, if that differs from the query of the hold. */
  readonly query?: Query | undefined;
}

export interface HoldRelease {
  readonly failure: UpstreamError;
  readonly attempts: readonly Attempt[];
  /** What providers will invoice anyway; the operator absorbs it. */
  readonly absorbed?: Charge | undefined;
}

/** Pays for requests. Code that uses this interface does not know which kind of payer it has. */
export interface Payer {
  /** The same for all requests that are paid from the same balance. */
  readonly id: string;
  /** Version of the price list at which this payer is served; the current one if undefined. */
  readonly priceList?: string | undefined;
  /**
   * Checks without holding anything whether `hold` would be rejected for this request, apart from a rejection for now.
   * Resolves for a payer whose money is only known when it is held.
   * @throws Rejection as `hold`; StoreUnavailableError
   */
  assertAffordable(request: HoldRequest): Promise<void>;
  /**
   * Holds what is available, between `minAmount` and `maxAmount`; at first only a part of it, if `partial` is set.
   * Waits while running requests of an account hold or need the money, for a limited time.
   * @throws Rejection if the payer cannot pay; HoldAlreadyExistsError if the request has a hold already; UpstreamError
   *   if a signal of the request ended the wait; any other error if nothing may be held
   */
  hold(request: HoldRequest): Promise<Hold>;
  /**
   * Extends the hold of a running request. Waits some seconds while the event store is unavailable.
   * @returns the extended hold. `retry_later`: too little is available, but other requests may release what they hold.
   *   `exhausted`: too little is available and no other request holds money, or the key is not valid. `expired`: the
   *   hold has ended, and nothing more may be served for it
   * @throws StoreUnavailableError if the event store did not respond in time
   */
  extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'>;
  /**
   * Settles a hold, once. Returns what is paid of the price: at most the held amount, and nothing once the hold was
   * ended as expired. With `isDelivered` the customer has got the response, or has caused that it ended early: after
   * the error below, the charge is still made. Otherwise the response must not be sent after that error: the hold then
   * ends without a charge, even if the charge had been stored.
   * @throws StoreUnavailableError if the event store did not confirm the charge in time; any error that a retry cannot
   *   change
   */
  settle(hold: Hold, charge: Charge, options: SettleOptions): Promise<PicoUsd>;
  /**
   * Releases the hold of a failed request; the payer pays nothing.
   * @throws StoreUnavailableError if the event store did not confirm it in time; the hold is still released later
   */
  release(hold: Hold, details: HoldRelease): Promise<void>;
}

/** Wraps another payer to add behaviour to its methods. */
export abstract class PayerDecorator implements Payer {
  constructor(protected readonly payer: Payer) {}

  get id(): string {
    return this.payer.id;
  }

  get priceList(): string | undefined {
    return this.payer.priceList;
  }

  assertAffordable(request: HoldRequest): Promise<void> {
    return this.payer.assertAffordable(request);
  }

  abstract hold(request: HoldRequest): Promise<Hold>;

  extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'> {
    return this.payer.extend(hold, extension);
  }

  settle(hold: Hold, charge: Charge, options: SettleOptions): Promise<PicoUsd> {
    return this.payer.settle(hold, charge, options);
  }

  release(hold: Hold, details: HoldRelease): Promise<void> {
    return this.payer.release(hold, details);
  }
}

/** A running request has a hold with this id. Serving this request as well would be free. */
export class HoldAlreadyExistsError extends Error {
  override readonly name = 'HoldAlreadyExistsError';
}
