/** The payer, as the money path sees it: the one interface between what is sold and where the money is. */
import type { Attempt, Charge, PartialHold, Query } from '#domain';
import type { PicoUsd } from '#kernel';
import type { UpstreamError } from '../errors.ts';

/** An account, and the key it was asked with; null when the account itself asks. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string | null;
}

/** The caller, as the facts that follow name it. */
export function toActor({ accountId, keyId }: Caller): string {
  return keyId === null ? `account:${accountId}` : `key:${keyId}`;
}

/**
 * Evidence that money is held. A call of a paid upstream needs one, so no call can be made without it. Plain
 * data: a job keeps it, and settles it days later from another process.
 */
export interface Hold {
  readonly holdId: string;
  /** The stream that holds the money, such as `account-…`: the payer is found by it. */
  readonly payer: string;
  readonly amount: PicoUsd;
  /** What was available beside it when it was taken. */
  readonly availableAfter: PicoUsd;
  /** What it can come to, with all that its payer has: also with what other requests held then, and may give back. */
  readonly maxSpendable: PicoUsd;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** More for a hold: altogether `targetAmount`, or what there is from `minAmount` on. Both are absolute, so that asking twice is asking once. */
export interface HoldExtensionRequest {
  readonly minAmount: PicoUsd;
  readonly targetAmount: PicoUsd;
}

export interface HoldRequest {
  /** One request, one charge: the id of the request. */
  readonly holdId: string;
  readonly query: Query;
  /** The version of the price list that it is quoted by. */
  readonly priceList: string;
  readonly minAmount: PicoUsd;
  readonly maxAmount: PicoUsd;
  /** How much of it is held at first; all of it where this is left out. */
  readonly partial?: PartialHold | undefined;
  readonly lifetimeMs: number;
}

/** Why a hold is released. */
export interface HoldRelease {
  readonly failure: UpstreamError;
  readonly attempts: readonly Attempt[];
  /** What upstreams will invoice nevertheless: the house bears it. */
  readonly absorbed?: Charge | undefined;
}

/** What a payer must be able to do. Nothing beside it knows which kind of payer it is. */
export interface Payer {
  /** The same for all requests that are paid from the same money. */
  readonly id: string;
  /** The version of the price list that it is served at; today's where this is left out. */
  readonly priceList?: string | undefined;
  /**
   * Holds what is available, between `minAmount` and `maxAmount`.
   * @throws Rejection when there is less, HoldAlreadyExistsError when the request has its hold already
   */
  hold(request: HoldRequest): Promise<Hold>;
  /**
   * Holds more for a request that runs. `retry_later`: other requests hold the rest, and may give it back. `exhausted`: there is
   * less, or the key may not spend any more; the hold stays as it is. `expired`: it has expired or ended, and nothing may be
   * served for it any more. While the store is away this waits.
   */
  extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'>;
  /** Charges a use, once. Returns what is paid of its price: at most what was held, nothing after the hold expired. */
  settle(hold: Hold, charge: Charge): Promise<PicoUsd>;
  /** Releases a hold, because nothing was delivered. */
  release(hold: Hold, details: HoldRelease): Promise<void>;
}

/** A payer that stands before another, and does something more with what it is asked for. */
export abstract class PayerDecorator implements Payer {
  constructor(protected readonly payer: Payer) {}

  get id(): string {
    return this.payer.id;
  }

  get priceList(): string | undefined {
    return this.payer.priceList;
  }

  abstract hold(request: HoldRequest): Promise<Hold>;

  extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'> {
    return this.payer.extend(hold, extension);
  }

  settle(hold: Hold, charge: Charge): Promise<PicoUsd> {
    return this.payer.settle(hold, charge);
  }

  release(hold: Hold, details: HoldRelease): Promise<void> {
    return this.payer.release(hold, details);
  }
}

/** The hold of this id belongs to another request, running or ended: serving it again would be free. */
export class HoldAlreadyExistsError extends Error {
  override readonly name = 'HoldAlreadyExistsError';
}
