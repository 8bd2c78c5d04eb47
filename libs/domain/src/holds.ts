/**
 * What payers of every kind have in common: money that is held for running requests. A hold has exactly one end: it is
 * settled, released, or it expires.
 */
import { money, PersistentMap, type PicoUsd } from '#kernel';
import type { Attempt, Charge } from './charge.ts';
import type { HoldEvent, HoldKept, HoldSettled } from './events.ts';
import type { Query } from './query.ts';
import { reject } from './rejections.ts';
import type { Instant } from './value-types.ts';

/** A job's hold ends with the job, however long that takes: its money is never free while its vendor may still invoice. */
const NO_EXPIRY = '9999-12-31T23:59:59.999Z';
/** Entries a memory holds before it drops its older half. */
const MAX_IDS_PER_GENERATION = 512;

/** Why a hold is released that is the request's own fault: the same request would fail again, wherever it is sent. */
export const REQUEST_ERROR_CODES: ReadonlySet<string> = new Set(['invalid_request', 'content_policy_violation']);

export interface OpenHold {
  readonly amount: PicoUsd;
  readonly keyId: string | null;
  /** What counts it for the key's cap. */
  readonly counter: string;
  readonly owner?: string;
  readonly expiresAt: Instant;
  readonly query: Query;
  readonly at: Instant;
  /** When it was counted for the cap: as it was made, or extended in a later reset window. */
  readonly countedAt: Instant;
}

/** How recent holds ended, in two generations: the older one is dropped when the newer is full. */
export type RecentIds = readonly [PersistentMap<string>, PersistentMap<string>];

export const NO_RECENT_IDS: RecentIds = [PersistentMap.empty(), PersistentMap.empty()];

export interface Holds {
  readonly holds: PersistentMap<OpenHold>;
  /** Holds that ended in time: a repeated command yields no facts. */
  readonly resolved: RecentIds;
  /** Holds that expired. Kept apart, so that a busy payer does not forget them before their late charge comes. */
  readonly expired: RecentIds;
}

// state -------------------------------------------------------------------------------------------------------------

type HoldResolution = 'settled' | 'released' | 'expired';

/** The holds of a payer without one that has ended. */
export function removeHold(holdId: string, resolution: HoldResolution, { holds, resolved, expired }: Holds): Holds {
  const isExpired = resolution === 'expired';
  return {
    holds: holds.without(holdId),
    resolved: isExpired ? resolved : addRecentId(resolved, holdId, resolution),
    expired: isExpired ? addRecentId(expired, holdId, resolution) : expired,
  };
}

/** A late charge of a hold that has expired was absorbed; that of one that was released is part of its release. */
export function markAbsorbed(holdId: string, { holds, resolved, expired }: Holds): Holds {
  const isReleased = findResolution(resolved, holdId) !== undefined;
  return { holds, resolved, expired: isReleased ? expired : addRecentId(expired, holdId, 'absorbed') };
}

/** The same holds, one of them in the hands of a job. */
export function transferHold({ holdId, owner, expiresAt }: HoldKept['data'], { holds }: Holds): Pick<Holds, 'holds'> {
  const hold = holds.get(holdId);
  return { holds: hold ? holds.with(holdId, { ...hold, owner, expiresAt }) : holds };
}

/** How a hold ended, as far as it is remembered: `settled`, `released`, `expired` or `absorbed`. */
export function getHoldResolution(holdId: string, { resolved, expired }: Pick<Holds, 'resolved' | 'expired'>) {
  return findResolution(resolved, holdId) ?? findResolution(expired, holdId);
}

function addRecentId([recent, older]: RecentIds, id: string, resolution: string): RecentIds {
  return recent.size < MAX_IDS_PER_GENERATION
    ? [recent.with(id, resolution), older]
    : [PersistentMap.empty<string>().with(id, resolution), recent];
}

function findResolution([recent, older]: RecentIds, id: string): string | undefined {
  return recent.get(id) ?? older.get(id);
}

/** About what they take in memory: bytes of the heap of Node 24, measured. */
export function estimateHoldsBytes({ holds, resolved, expired }: Holds): number {
  return holds.estimateBytes(400) + estimateRecentIdsBytes(resolved) + estimateRecentIdsBytes(expired);
}

function estimateRecentIdsBytes([recent, older]: RecentIds): number {
  return recent.estimateBytes(105) + older.estimateBytes(105);
}

// commands ----------------------------------------------------------------------------------------------------------

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Readonly<Data> & { readonly at: Instant };
}

/** Commands about holds, the same for payers of every kind. */
export type HoldCommand =
  | Command<'KeepHold', { holdId: string; owner: string }>
  | Command<'SettleHold', { holdId: string; charge: Charge }>
  | Command<'ReleaseHold', ReleaseTerms>
  | Command<'ExpireHolds', { before: Instant }>
  | Command<'AbandonHolds', { owner: string }>;

interface ReleaseTerms {
  readonly holdId: string;
  readonly errorCode: string;
  readonly reason: string;
  readonly attempts: readonly Attempt[];
  /** What the upstream will invoice although nothing was delivered. */
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
    case 'ExpireHolds': {
      const { before, at } = command.data;
      return expireHolds((hold) => hold.expiresAt <= before, at, payer);
    }
    case 'AbandonHolds': {
      // Should the owner live after all, it finds what is true of every hold that has expired: nothing grows or is charged.
      const { owner, at } = command.data;
      return expireHolds((hold) => hold.owner === owner, at, payer);
    }
    default:
      return command satisfies never;
  }
}

function keepHold({ holdId, owner, at }: DataOf<'KeepHold'>, { holds }: Holds): readonly HoldEvent[] {
  const hold = holds.get(holdId);
  if (hold?.owner === owner) return [];
  if (!hold || hold.expiresAt <= at) return reject('hold_resolved', `Hold ${holdId} has ended`);
  return [{ type: 'HoldKept', data: { holdId, owner, expiresAt: NO_EXPIRY, at } }];
}

function settleHold({ holdId, charge, at }: DataOf<'SettleHold'>, payer: Holds): readonly HoldEvent[] {
  const hold = payer.holds.get(holdId);
  if (hold) {
    const charged = money.toJsonAmount(money.min(money.parseJsonAmount(charge.price), hold.amount));
    const data: HoldSettled['data'] = { ...toResolvedData(holdId, hold, at), charged, charge };
    return [{ type: 'HoldSettled', data }];
  }
  switch (getHoldResolution(holdId, payer)) {
    case 'settled':
    case 'absorbed':
      return [];
    case 'expired':
      return [{ type: 'ChargeAbsorbed', data: { holdId, charge, at } }];
    case 'released':
      return reject('hold_resolved', `Hold ${holdId} was released`);
    default:
      return reject('hold_not_found', `There is no hold ${holdId}`);
  }
}

function releaseHold({ holdId, at, absorbed, ...failure }: DataOf<'ReleaseHold'>, payer: Holds): readonly HoldEvent[] {
  const hold = payer.holds.get(holdId);
  if (hold) {
    const released: HoldEvent = { type: 'HoldReleased', data: { ...toResolvedData(holdId, hold, at), ...failure } };
    return absorbed ? [released, { type: 'ChargeAbsorbed', data: { holdId, charge: absorbed, at } }] : [released];
  }
  switch (getHoldResolution(holdId, payer)) {
    case 'released':
    case 'expired':
      return [];
    case undefined:
      return reject('hold_not_found', `There is no hold ${holdId}`);
    default:
      return reject('hold_resolved', `Hold ${holdId} was settled`);
  }
}

function expireHolds(hasEnded: (hold: OpenHold) => boolean, at: Instant, { holds }: Holds): readonly HoldEvent[] {
  const endedHolds = [...holds.entries()].filter(([, hold]) => hasEnded(hold));
  return endedHolds.map(([holdId, hold]) => ({ type: 'HoldExpired', data: toResolvedData(holdId, hold, at) }));
}

function toResolvedData(holdId: string, hold: OpenHold, at: Instant) {
  const { keyId, amount, at: heldAt, countedAt, query } = hold;
  const countedAtField = countedAt === heldAt ? {} : { countedAt };
  return { holdId, keyId, held: money.toJsonAmount(amount), heldAt, ...countedAtField, query, at };
}
