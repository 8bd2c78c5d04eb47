/** What an account can be asked to do. Commands carry the time they are made at. */
import type { PicoUsd } from '#kernel';
import type { Instant, KeyCreated, KeyUpdated, Query } from '../events.ts';
import type { HoldCommand } from '../holds.ts';

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Readonly<Data> & { readonly at: Instant };
}

type NewKey = Omit<KeyCreated['data'], 'at'>;

export type AccountCommand =
  | Command<'OpenAccount', { key: NewKey }>
  | Command<'CreateKey', { key: NewKey }>
  | Command<'UpdateKey', { keyId: string; changes: Omit<KeyUpdated['data'], 'keyId' | 'at'> }>
  | Command<'RevokeKey', { keyId: string }>
  | Command<'AddCredit', { creditId: string; method: string; amount: PicoUsd; bonus: PicoUsd }>
  | Command<'ReverseCredit', CreditReversal>
  /** `lossLimit`: what the house bears for the account in an hour; any amount where it is left out. */
  | Command<'HoldFunds', HoldLimits & { lossLimit?: PicoUsd | undefined }>
  | Command<'ExtendHold', HoldExtension>
  | HoldCommand;

/** A credit is taken back, wholly or in part (amounts below zero), or given again. The balance may fall below zero. */
interface CreditReversal {
  readonly reversalId: string;
  readonly creditId: string;
  readonly method: string;
  readonly amount: PicoUsd;
  readonly bonus: PicoUsd;
  readonly why: string;
}

/**
 * A hold that leaves room for other requests: of what is available it takes the `divisor`-th part, and `minAmount` where that
 * is more.
 */
export interface PartialHold {
  readonly minAmount: PicoUsd;
  readonly divisor: bigint;
}

/** A hold of what is available, between `minAmount` (or it is rejected) and `maxAmount`. */
export interface HoldLimits {
  readonly holdId: string;
  readonly keyId: string | null;
  readonly minAmount: PicoUsd;
  readonly maxAmount: PicoUsd;
  /** All of it is held where this is left out. */
  readonly partialHold?: PartialHold | undefined;
  /** The process that serves the request: once it has died the hold ends. */
  readonly owner?: string;
  readonly expiresAt: Instant;
  readonly query: Query;
}

/** More for a running request: altogether `targetAmount`, or what there is from `minAmount` on. */
export interface HoldExtension {
  readonly holdId: string;
  readonly minAmount: PicoUsd;
  readonly targetAmount: PicoUsd;
}
