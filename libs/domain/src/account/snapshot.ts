/** The JSON form of an account in snapshots. */
import { Map as ImmutableMap } from 'immutable';
import { money, type StateCodec, toSchemaFingerprint } from '#kernel';
import type { OpenHold, RecentIds } from '../holds.ts';
import { type ApiKeyState, measureAccess } from '../keys.ts';
import { EVENT_SCHEMA } from '../upcasters/index.ts';
import type { AbsorbedLosses } from './absorbed-losses.ts';
import { type HoldPrices, parseHoldPrices, type StoredHoldPrices, toStoredPrices } from './exposure.ts';
import type { AccountState, AdjustmentState } from './state.ts';

type Entries<V> = readonly (readonly [string, V])[];
type RecentIdsJson = readonly [Entries<string>, Entries<string>];

type Sums = 'exposure' | 'reserve';
type KeyAmounts = { limit: string | null } & Record<'used' | 'held' | 'usedInAll' | Sums, string>;
type KeyJson = Omit<ApiKeyState, keyof KeyAmounts> & KeyAmounts;

type HoldJson = Omit<OpenHold, keyof HoldPrices> & StoredHoldPrices & { readonly amount: string };

interface AccountJson {
  readonly status: AccountState['status'];
  readonly available: string;
  readonly held: string;
  readonly exposure: string;
  readonly reserve: string;
  readonly holds: Entries<HoldJson>;
  readonly keys: Entries<KeyJson>;
  readonly credits: Entries<string>;
  readonly reversals: Entries<string>;
  readonly adjustments: Entries<AdjustmentState>;
  readonly resolved: RecentIdsJson;
  readonly expired: RecentIdsJson;
  readonly losses?: LossesJson;
}

type LossesJson = Pick<AbsorbedLosses, 'since'> & Readonly<Record<'borne' | 'unheld' | 'charged', string>>;

/**
 * Increase this if the fields of `AccountState` or the results of `evolve` change. Older snapshots are then ignored.
 */
const STATE_VERSION = 11;

export const accountCodec: StateCodec<AccountState> = {
  version: `${STATE_VERSION} ${toSchemaFingerprint(EVENT_SCHEMA)}`,
  encode: (account): AccountJson => ({
    status: account.status,
    available: money.toJsonAmount(account.available),
    held: money.toJsonAmount(account.held),
    exposure: money.toJsonAmount(account.exposure),
    reserve: money.toJsonAmount(account.reserve),
    holds: account.holds.toArray().map(([id, hold]) => [id, encodeHold(hold)]),
    keys: account.keys.toArray().map(([id, key]) => [id, encodeKey(key)]),
    credits: account.credits.toArray(),
    reversals: account.reversals.toArray(),
    adjustments: account.adjustments.toArray(),
    resolved: encodeRecentIds(account.resolved),
    expired: encodeRecentIds(account.expired),
    ...(account.losses ? { losses: encodeLosses(account.losses) } : {}),
  }),
  decode: (json: AccountJson): AccountState => ({
    status: json.status,
    available: money.parseJsonAmount(json.available),
    held: money.parseJsonAmount(json.held),
    exposure: money.parseJsonAmount(json.exposure),
    reserve: money.parseJsonAmount(json.reserve),
    holds: ImmutableMap(json.holds.map(([id, hold]) => [id, decodeHold(hold)])),
    keys: ImmutableMap(json.keys.map(([id, key]) => [id, decodeKey(key)])),
    accessLength: json.keys.reduce((length, [, key]) => length + measureAccess(key), 0),
    credits: ImmutableMap(json.credits),
    reversals: ImmutableMap(json.reversals),
    adjustments: ImmutableMap(json.adjustments),
    resolved: decodeRecentIds(json.resolved),
    expired: decodeRecentIds(json.expired),
    ...(json.losses ? { losses: decodeLosses(json.losses) } : {}),
  }),
};

function encodeHold({ amount, limitPrice, stopPrice, longPrice, ...hold }: OpenHold): HoldJson {
  return { ...hold, amount: money.toJsonAmount(amount), ...toStoredPrices({ limitPrice, stopPrice, longPrice }) };
}

function decodeHold({ amount, limitPrice, stopPrice, longPrice, ...hold }: HoldJson): OpenHold {
  return { ...hold, amount: money.parseJsonAmount(amount), ...parseHoldPrices({ limitPrice, stopPrice, longPrice }) };
}

function encodeLosses({ since, borne, unheld, charged }: AbsorbedLosses): LossesJson {
  return {
    since,
    borne: money.toJsonAmount(borne),
    unheld: money.toJsonAmount(unheld),
    charged: money.toJsonAmount(charged),
  };
}

function decodeLosses({ since, borne, unheld, charged }: LossesJson): AbsorbedLosses {
  return {
    since,
    borne: money.parseJsonAmount(borne),
    unheld: money.parseJsonAmount(unheld),
    charged: money.parseJsonAmount(charged),
  };
}

function encodeKey(key: ApiKeyState): KeyJson {
  const limit = key.limit === null ? null : money.toJsonAmount(key.limit);
  const { used, held, exposure, reserve, usedInAll } = key;
  return {
    ...key,
    limit,
    used: money.toJsonAmount(used),
    held: money.toJsonAmount(held),
    exposure: money.toJsonAmount(exposure),
    reserve: money.toJsonAmount(reserve),
    usedInAll: money.toJsonAmount(usedInAll),
  };
}

function decodeKey(json: KeyJson): ApiKeyState {
  const limit = json.limit === null ? null : money.parseJsonAmount(json.limit);
  const { used, held, exposure, reserve, usedInAll } = json;
  return {
    ...json,
    limit,
    used: money.parseJsonAmount(used),
    held: money.parseJsonAmount(held),
    exposure: money.parseJsonAmount(exposure),
    reserve: money.parseJsonAmount(reserve),
    usedInAll: money.parseJsonAmount(usedInAll),
  };
}

function encodeRecentIds([recent, older]: RecentIds): RecentIdsJson {
  return [recent.toArray(), older.toArray()];
}

function decodeRecentIds([recent, older]: RecentIdsJson): RecentIds {
  return [ImmutableMap(recent), ImmutableMap(older)];
}
