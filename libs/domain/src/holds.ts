/**
 * Holds, for payers of every kind. A hold reserves money for a running request. It ends exactly once: it is settled,
 * released, or it expires.
 */
import { Map as ImmutableMap } from 'immutable';
import { money, type PicoUsd } from '#kernel';
import type { Attempt, Charge } from './charge.ts';
import type { HoldEvent, HoldKept, HoldSettled } from './events.ts';
import type { Query } from './query.ts';
import { reject } from './rejections.ts';
import type { Instant } from './value-types.ts';

/** The hold of a job ends only with the job: its money stays reserved while the provider may still invoice. */
const NO_EXPIRY = '9999-12-31T23:59:59.999Z';
/** Maximum entries of the newer generation of `RecentIds`. Beyond it, the older generation is dropped. */
const MAX_IDS_PER_GENERATION = 512;
/** Heap size of an entry of the maps of open and of ended holds, measured with Node 24. */
const HOLD_BYTES = 640;
const ENDED_HOLD_BYTES = 205;

/** Error codes of failures that the request itself causes: it would fail again at any provider. */
export const REQUEST_ERROR_CODES: ReadonlySet<string> = new Set(['invalid_request', 'content_policy_violation']);

export interface OpenHold {
  readonly amount: PicoUsd;
  readonly keyId: string | null;
  /** Id of the counters of the key that include this hold, see `toCounterId`; empty without a key. */
  readonly counter: string;
  readonly owner?: string;
  readonly expiresAt: Instant;
  readonly query: Query;
  readonly at: Instant;
  /** When the hold was counted for the limit of the key: when it was placed, or extended in a later reset window. */
  readonly countedAt: Instant;
  /** Price of the output limit that the provider gets, if it exceeds the amount. See `FundsHeld`. */
  readonly limitPrice?: PicoUsd;
  readonly stopPrice?: PicoUsd;
  readonly longPrice?: PicoUsd;
}

/** How recent holds ended, in two generations: the older one is dropped when the newer one is full. */
export type RecentIds = readonly [ImmutableMap<string, string>, ImmutableMap<string, string>];

export const NO_RECENT_IDS: RecentIds = [ImmutableMap(), ImmutableMap()];

export interface Holds {
  readonly holds: ImmutableMap<string, OpenHold>;
  /** Holds that were settled or released. A repeated settlement or release produces no events. */
  readonly resolved: RecentIds;
  /**
   * Holds that expired. They have their own maps: the many settled holds of a busy payer must not evict them before
   * their late charge.
   */
  readonly expired: RecentIds;
}

// state -------------------------------------------------------------------------------------------------------------

type HoldResolution = 'settled' | 'released' | 'expired';

/** Removes a hold that has ended and records how it ended. */
export function removeHold(holdId: string, resolution: HoldResolution, { holds, resolved, expired }: Holds): Holds {
  const isExpired = resolution === 'expired';
  return {
    holds: holds.delete(holdId),
    resolved: isExpired ? resolved : addRecentId(resolved, holdId, resolution),
    expired: isExpired ? addRecentId(expired, holdId, resolution) : expired,
  };
}

/** Records that the late charge of an expired hold was absorbed. A charge absorbed with a release needs no record. */
export function markAbsorbed(holdId: string, { holds, resolved, expired }: Holds): Holds {
  const isReleased = findResolution(resolved, holdId) !== undefined;
  return { holds, resolved, expired: isReleased ? expired : addRecentId(expired, holdId, 'absorbed') };
}

/** Records that the charge of a settled hold was reversed. */
export function markReversed(holdId: string, { holds, resolved, expired }: Holds): Holds {
  return { holds, resolved: addRecentId(resolved, holdId, 'reversed'), expired };
}

/** Makes a job the owner of a hold. */
export function transferHold({ holdId, owner, expiresAt }: HoldKept['data'], { holds }: Holds): Pick<Holds, 'holds'> {
  const hold = holds.get(holdId);
  return { holds: hold ? holds.set(holdId, { ...hold, owner, expiresAt }) : holds };
}

/**
 * Returns how a hold ended: `settled`, `reversed`, `released`, `expired` or `absorbed`.
 * @returns undefined for a hold that is open, unknown or evicted from the recent ids
 */
export function getHoldResolution(holdId: string, { resolved, expired }: Pick<Holds, 'resolved' | 'expired'>) {
  return findResolution(resolved, holdId) ?? findResolution(expired, holdId);
}

function addRecentId([recent, older]: RecentIds, id: string, resolution: string): RecentIds {
  return recent.size < MAX_IDS_PER_GENERATION
    ? [recent.set(id, resolution), older]
    : [ImmutableMap([[id, resolution]]), recent];
}

function findResolution([recent, older]: RecentIds, id: string): string | undefined {
  return recent.get(id) ?? older.get(id);
}

/** Estimates the memory of the holds in bytes. */
export function estimateHoldsBytes({ holds, resolved, expired }: Holds): number {
  const endedHolds = [...resolved, ...expired].reduce((sum, ids) => sum + ids.size, 0);
  return HOLD_BYTES * holds.size + ENDED_HOLD_BYTES * endedHolds;
}

// commands ----------------------------------------------------------------------------------------------------------

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Readonly<Data> & { readonly at: Instant };
}

/** Commands about holds, the same for payers of every kind. */
export type HoldCommand =
  | Command<'KeepHold', { holdId: string; owner: string }>
  /** @param query describes what was served, if that differs from the hold: another model of a list responded */
  | Command<'SettleHold', { holdId: string; charge: Charge; query?: Query | undefined }>
  | Command<'ReleaseHold', ReleaseTerms>
  /** Ends the hold of a response that the customer did not get. The operator absorbs the charge. */
  | Command<'AbsorbCharge', { holdId: string; charge: Charge }>
  /**
   * Reverses a charge for a response that the customer did not get.
   * @param settled the charge in the stream of the payer, which has no reversal of it
   */
  | Command<'ReverseCharge', { settled: HoldSettled['data'] }>
  | Command<'ExpireHolds', { before: Instant }>
  /**
   * Ends the holds that a dead process placed before `before`. The command may be delayed until the process has returned:
   * holds that were placed since then are in use.
   */
  | Command<'AbandonHolds', { owner: string; before: Instant }>;

interface ReleaseTerms {
  readonly holdId: string;
  readonly errorCode: string;
  readonly reason: string;
  readonly attempts: readonly Attempt[];
  /** What the provider will invoice although nothing was delivered; recorded even if the hold has expired. */
  readonly absorbed?: Charge;
}

type DataOf<Type extends HoldCommand['type']> = Extract<HoldCommand, { type: Type }>['data'];

// decide ------------------------------------------------------------------------------------------------------------

export function decideHold(command: HoldCommand, payer: Holds): readonly HoldEvent[] {
  switch (command.type) {
    case 'KeepHold':
      return keepHold(command.data, payer);
    case 'SettleHold':
      return settleHold(command.data, payer);
    case 'ReleaseHold':
      return releaseHold(command.data, payer);
    case 'AbsorbCharge':
      return absorbCharge(command.data, payer);
    case 'ReverseCharge':
      return reverseCharge(command.data, payer);
    case 'ExpireHolds': {
      const { before, at } = command.data;
      return expireHolds((hold) => hold.expiresAt <= before, at, payer);
    }
    case 'AbandonHolds': {
      // If the owner is still alive, its holds behave like all expired holds: they can be neither extended nor charged.
      const { owner, before, at } = command.data;
      return expireHolds((hold) => hold.owner === owner && hold.at < before, at, payer);
    }
    default:
      return command satisfies never;
  }
}

function keepHold({ holdId, owner, at }: DataOf<'KeepHold'>, { holds }: Holds): readonly HoldEvent[] {
  const hold = holds.get(holdId);
  if (hold?.owner === owner) return [];
  if (!hold || hold.expiresAt <= at) return reject('hold_resolved', `Hold ${holdId} is not open or has expired`);
  return [{ type: 'HoldKept', data: { holdId, owner, expiresAt: NO_EXPIRY, at } }];
}

function settleHold({ holdId, charge, query, at }: DataOf<'SettleHold'>, payer: Holds): readonly HoldEvent[] {
  const hold = payer.holds.get(holdId);
  if (hold) {
    const charged = money.toJsonAmount(money.min(money.parseJsonAmount(charge.price), hold.amount));
    const resolved = toResolvedData(holdId, hold, at);
    const data: HoldSettled['data'] = { ...resolved, query: query ?? resolved.query, charged, charge };
    return [{ type: 'HoldSettled', data }];
  }
  switch (getHoldResolution(holdId, payer)) {
    case 'settled':
    case 'absorbed':
      return [];
    case 'expired':
      return [{ type: 'ChargeAbsorbed', data: { holdId, charge, at } }];
    case 'released':
    case 'reversed':
      return reject('hold_resolved', `Hold ${holdId} was released`);
    default:
      return reject('hold_not_found', `Hold ${holdId} not found`);
  }
}

/** The hold ends as expired: the account did not cause the loss, so it does not count towards the account's limit. */
function absorbCharge({ holdId, charge, at }: DataOf<'AbsorbCharge'>, payer: Holds): readonly HoldEvent[] {
  const hold = payer.holds.get(holdId);
  const absorbed: HoldEvent = { type: 'ChargeAbsorbed', data: { holdId, charge, at } };
  if (hold) return [{ type: 'HoldExpired', data: toResolvedData(holdId, hold, at) }, absorbed];
  switch (getHoldResolution(holdId, payer)) {
    case 'expired':
      return [absorbed];
    case 'absorbed':
    case 'reversed':
      return [];
    case undefined:
      return reject('hold_not_found', `Hold ${holdId} not found`);
    default:
      return reject('hold_resolved', `Hold ${holdId} was settled or released`);
  }
}

function reverseCharge({ settled, at }: DataOf<'ReverseCharge'>, payer: Holds): readonly HoldEvent[] {
  const { holdId, keyId, heldAt, countedAt, countedIn, query, charged } = settled;
  const resolution = getHoldResolution(holdId, payer);
  if (resolution === 'reversed') return [];
  // A payer remembers a limited number of ended holds. Of one that it does not know, the caller has read the charge.
  const isCharged = resolution === 'settled' || (resolution === undefined && !payer.holds.has(holdId));
  if (!isCharged) return reject('hold_not_found', `Hold ${holdId} has no charge`);
  return [
    {
      type: 'ChargeReversed',
      data: {
        holdId,
        keyId,
        heldAt,
        ...(countedAt === undefined ? {} : { countedAt }),
        ...(countedIn === undefined ? {} : { countedIn }),
        query,
        charged,
        at,
      },
    },
  ];
}

function releaseHold({ holdId, at, absorbed, ...failure }: DataOf<'ReleaseHold'>, payer: Holds): readonly HoldEvent[] {
  const hold = payer.holds.get(holdId);
  const cost: HoldEvent[] = absorbed ? [{ type: 'ChargeAbsorbed', data: { holdId, charge: absorbed, at } }] : [];
  if (hold) return [{ type: 'HoldReleased', data: { ...toResolvedData(holdId, hold, at), ...failure } }, ...cost];
  const resolution = getHoldResolution(holdId, payer);
  if (resolution === 'absorbed' && absorbed) return [];
  switch (resolution) {
    case 'released':
      return [];
    case 'expired':
      return cost; // the provider invoices the call even though its hold has ended
    case undefined:
      return reject('hold_not_found', `Hold ${holdId} not found`);
    default:
      return reject('hold_resolved', `Hold ${holdId} already has a charge`);
  }
}

function expireHolds(hasEnded: (hold: OpenHold) => boolean, at: Instant, { holds }: Holds): readonly HoldEvent[] {
  // Sorted, because equal maps iterate in different orders, and a decision depends only on what its state contains.
  const endedHolds = holds
    .filter(hasEnded)
    .toArray()
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return endedHolds.map(([holdId, hold]) => ({ type: 'HoldExpired', data: toResolvedData(holdId, hold, at) }));
}

function toResolvedData(holdId: string, hold: OpenHold, at: Instant) {
  const { keyId, amount, at: heldAt, countedAt, query } = hold;
  const countedAtField = countedAt === heldAt ? {} : { countedAt };
  return { holdId, keyId, held: money.toJsonAmount(amount), heldAt, ...countedAtField, query, at };
}
