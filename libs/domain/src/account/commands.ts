/** The commands of an account. Every command has the instant at which it was created. */
import type { PicoUsd } from '#kernel';
import type { BalanceAdjusted, Instant, KeyCreated, KeyUpdated, Query } from '../events.ts';
import type { HoldCommand } from '../holds.ts';
import type { RiskLimits } from './exposure.ts';

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Readonly<Data> & { readonly at: Instant };
}

type NewKey = Omit<KeyCreated['data'], 'at'>;

export type AccountCommand =
  | Command<'OpenAccount', { key?: NewKey | undefined }>
  | Command<'CreateKey', { key: NewKey }>
  | Command<'UpdateKey', { keyId: string; changes: Omit<KeyUpdated['data'], 'keyId' | 'at'> }>
  | Command<'RevokeKey', { keyId: string }>
  | Command<'AddCredit', { creditId: string; method: string; amount: PicoUsd; bonus: PicoUsd }>
  | Command<'ReverseCredit', CreditReversal>
  | Command<'AdjustBalance', Adjustment>
  | Command<'HoldFunds', HoldLimits & { riskLimits?: RiskLimits | undefined }>
  | Command<'ExtendHold', HoldExtension & { riskLimits?: RiskLimits | undefined }>
  | HoldCommand;

/** Reverses a credit completely or in part (negative amounts), or restores it. The balance can become negative. */
interface CreditReversal {
  readonly reversalId: string;
  readonly creditId: string;
  readonly method: string;
  readonly amount: PicoUsd;
  readonly bonus: PicoUsd;
  readonly why: string;
}

/** Credits (positive) or debits an account without a payment, or reverses an adjustment. */
type Adjustment = Omit<BalanceAdjusted['data'], 'amount' | 'at'> & { readonly amount: PicoUsd };

/**
 * Leaves money for other requests: at most the largest of `minAmount`, the `minAmount` of the hold and the available
 * amount divided by `divisor` is held.
 */
export interface PartialHold {
  readonly minAmount: PicoUsd;
  readonly divisor: bigint;
  /** Set if the hold can be extended during the response. Otherwise the provider may bill at most what is held. */
  readonly extension?: HoldExtensionTerms | undefined;
}

/**
 * Prices that determine the output limit of a response whose hold is extended while it is generated, and how much money
 * other requests must leave for it.
 */
export interface HoldExtensionTerms {
  /** Price of a usual long response: the output limit is not reduced below it. */
  readonly minLimitPrice: PicoUsd;
  /** Price of the output limit if the gateway cannot choose the limit; the payer's money then does not reduce it. */
  readonly fixedLimitPrice?: PicoUsd | undefined;
  /** Price of a long response, up to which other requests leave money. */
  readonly longPrice: PicoUsd;
  /** Price of what is generated before the provider stops; undefined if the speed is unknown. */
  readonly stopPrice?: PicoUsd | undefined;
}

/**
 * Holds up to `maxAmount` of the available amount. Rejected if less than `minAmount` is available. Also rejected if
 * less than the first part is available, while running requests hold the rest of it. The first part is
 * `partialHold.minAmount` or, without a partial hold, `maxAmount`.
 */
export interface HoldLimits {
  readonly holdId: string;
  readonly keyId: string | null;
  readonly minAmount: PicoUsd;
  readonly maxAmount: PicoUsd;
  /** If omitted, `maxAmount` is held as far as it is available. */
  readonly partialHold?: PartialHold | undefined;
  /** The process that serves the request. The hold expires after this process has died. */
  readonly owner?: string;
  readonly expiresAt: Instant;
  readonly query: Query;
  /** Further models that may be called for the request; the key must permit all of them. */
  readonly fallbackModels?: readonly string[] | undefined;
  /**
   * What the process knows of the `dedupeSeconds` of the key: the hold is rejected if that is outdated. Undefined for a
   * request that does not depend on it.
   */
  readonly dedupeSeconds?: number | null | undefined;
  /**
   * Number of other requests of the payer that wait for a hold in this process; undefined for the first attempt. The
   * output limit leaves money for them.
   */
  readonly waiting?: number | undefined;
}

/** Extends a hold to a total of `targetAmount`, or to less if less is available, but at least to `minAmount`. */
export interface HoldExtension {
  readonly holdId: string;
  readonly minAmount: PicoUsd;
  readonly targetAmount: PicoUsd;
  /** The total before the extension. A larger hold was extended by an earlier attempt, whose response was lost. */
  readonly knownAmount: PicoUsd;
  /** Price of what is generated before the provider stops, if the speed has become known during the response. */
  readonly stopPrice?: PicoUsd | undefined;
  /** Nothing more is generated for the hold: it is extended to what the response has cost. */
  readonly isFinal?: boolean | undefined;
}
