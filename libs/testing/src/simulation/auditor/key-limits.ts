/**
 * Rules for the API keys of an account and their spending limits.
 *
 * The time of a limit is divided into windows: UTC days, weeks from Monday, calendar months, or one endless window.
 * Here a window is a number that counts days, weeks or months. Each hold is an entry of one window: the one that
 * contains the time of the hold, or the latest window that the key has used if that is later. An extension moves the
 * hold to the window that contains the extension, by the same rule. The charge counts where the hold was. A change of
 * the reset period starts new windows, in which no earlier hold or charge counts.
 */
import { type AuditedEvent, getOrCreate, parseAmount, toMs } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';

const DAY_MS = 86_400_000;
/** 1 January 1970 was a Thursday, three days after a Monday. */
const DAYS_SINCE_MONDAY = 3;

/** Amounts in pico-USD. */
interface Window {
  readonly id: string;
  open: bigint;
  charged: bigint;
  /** Charges that were given back. */
  reversed: bigint;
  /**
   * Charges minus those reversals that count: a charge from before the last change of the settings is subtracted from
   * the balance of the limit in no window.
   */
  used: bigint;
}

interface Key {
  readonly createdAt: string;
  updatedAt: string;
  name: string;
  limit: bigint | null;
  period: string | null;
  expireAt: string | null;
  models: readonly string[] | null;
  isBlocked: boolean;
  isRevoked: boolean;
  usedInAll: bigint;
  /** Whether the reset period was ever changed. */
  hasNewPeriod: boolean;
  /** By number, those since the last change of the reset period. */
  windows: Map<number, Window>;
  /** The number of the latest window that was used. */
  latest: number;
}

interface Entry {
  readonly key: Key;
  readonly windows: Map<number, Window>;
  readonly window: Window;
  readonly amount: bigint;
  readonly countedAt: string;
}

/** Amounts in pico-USD. */
export interface AuditedKey {
  readonly usedInAll: bigint;
  /** Id of the latest window that was used, such as `daily:2026-11-20`. */
  readonly window: string;
  /** What was used by id of the window, since the last change of the reset period. */
  readonly used: ReadonlyMap<string, bigint>;
}

export class KeyLimits {
  private readonly keys = new Map<string, Key>();
  /** Open and ended holds with a key. */
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly recorder: FindingRecorder) {}

  apply({ type, data }: AuditedEvent): void {
    switch (type) {
      case 'KeyCreated':
        this.create(data);
        return;
      case 'KeyUpdated':
        this.update(data);
        return;
      case 'KeyRevoked': {
        const key = this.getActiveKey(data);
        if (key) {
          key.isRevoked = true;
          key.updatedAt = data.at;
        }
        return;
      }
      case 'FundsHeld':
        this.hold(data);
        return;
      case 'HoldExtended':
        this.extend(data);
        return;
      case 'HoldSettled':
      case 'HoldReleased':
      case 'HoldExpired':
        this.end(data, type === 'HoldSettled');
        return;
      case 'ChargeReversed':
        this.reverse(data);
        return;
      default:
    }
  }

  getKey(keyId: string): AuditedKey | undefined {
    const key = this.keys.get(keyId);
    if (!key) return undefined;
    const used = new Map([...key.windows.values()].map((window) => [window.id, window.used]));
    return { usedInAll: key.usedInAll, window: formatWindow(key.period, key.latest), used };
  }

  listKeyIds(): readonly string[] {
    return [...this.keys.keys()];
  }

  private create({ keyId, name, limit, resetPeriod = null, expireAt, models, blocked, at }: AuditedEvent['data']) {
    const id = String(keyId);
    this.recorder.check(!this.keys.has(id), 'a key is created once', () => id);
    const key: Key = {
      createdAt: at,
      updatedAt: at,
      name,
      limit: limit == null ? null : parseAmount(limit),
      period: resetPeriod,
      expireAt: expireAt ?? null,
      models: models ?? null,
      isBlocked: blocked === true,
      isRevoked: false,
      usedInAll: 0n,
      hasNewPeriod: false,
      windows: new Map(),
      latest: countWindows(resetPeriod, at),
    };
    this.keys.set(id, key);
    this.checkSettings(key);
  }

  private update(data: AuditedEvent['data']): void {
    const key = this.getActiveKey(data);
    if (!key) return;
    const { limit, resetPeriod, expireAt, models, blocked, at } = data;
    key.updatedAt = at;
    key.name = data.name ?? key.name;
    if (limit !== undefined) key.limit = limit === null ? null : parseAmount(limit);
    if (expireAt !== undefined) key.expireAt = expireAt;
    if (models !== undefined) key.models = models;
    if (blocked !== undefined) key.isBlocked = blocked;
    if (resetPeriod !== undefined && resetPeriod !== key.period) {
      key.period = resetPeriod;
      key.hasNewPeriod = true;
      key.windows = new Map();
      key.latest = countWindows(resetPeriod, at);
    }
    this.checkSettings(key);
  }

  private checkSettings(key: Key): void {
    const { period, limit, name } = key;
    this.recorder.check(period === null || limit !== null, 'a reset period has a limit', () => `key "${name}"`);
    const active = [...this.keys.values()].filter((other) => !other.isRevoked && other.name === name);
    this.recorder.check(active.length <= 1, 'active keys have different names', () => `key "${name}"`);
  }

  private getActiveKey({ keyId }: AuditedEvent['data']): Key | undefined {
    const key = this.keys.get(String(keyId));
    this.recorder.check(key?.isRevoked === false, 'only an active key is changed or revoked', () => String(keyId));
    return key;
  }

  private hold({ holdId, keyId, amount, query, at }: AuditedEvent['data']): void {
    if (keyId === null) return;
    const { recorder } = this;
    const key = this.keys.get(keyId);
    recorder.check(key !== undefined, 'a hold has an existing key', () => `${holdId}: ${keyId}`);
    if (!key) return;
    const describe = () => `${holdId}: key ${keyId} at ${at}`;
    recorder.check(!key.isRevoked, 'no hold has a revoked key', describe);
    recorder.check(!key.isBlocked, 'no hold has a blocked key', describe);
    recorder.check(key.expireAt === null || at < key.expireAt, 'no hold has an expired key', describe);
    const isPermitted = key.models === null || key.models.some((pattern) => toRegExp(pattern).test(query.model));
    recorder.check(isPermitted, 'a key permits the model of its hold', () => `${holdId}: ${query.model}`);
    this.count({ key, holdId, amount: parseAmount(amount), at });
    if (parseAmount(amount) > 0n) this.checkLimit(holdId);
  }

  private extend({ holdId, by, at }: AuditedEvent['data']): void {
    const entry = this.entries.get(holdId);
    if (!entry) return;
    const { key } = entry;
    entry.window.open -= entry.amount;
    const isSame = this.getWindow(key, at) === entry.window;
    const amount = entry.amount + parseAmount(by);
    this.count({ key, holdId, amount, at: isSame ? entry.countedAt : at });
    this.checkLimit(holdId);
  }

  private count({ key, holdId, amount, at }: Pick<Entry, 'key' | 'amount'> & { holdId: string; at: string }): void {
    const window = this.getWindow(key, at);
    window.open += amount;
    this.entries.set(holdId, { key, windows: key.windows, window, amount, countedAt: at });
  }

  /** Returns the window in which a hold counts that is placed or extended at `at`. */
  private getWindow(key: Key, at: string): Window {
    const current = countWindows(key.period, at);
    if (current > key.latest) key.latest = current;
    const id = formatWindow(key.period, key.latest);
    return getOrCreate(key.windows, key.latest, () => ({ id, open: 0n, charged: 0n, reversed: 0n, used: 0n }));
  }

  private checkLimit(holdId: string): void {
    const entry = this.entries.get(holdId);
    if (!entry || entry.key.limit === null) return;
    const { limit } = entry.key;
    const { id, open, charged, reversed } = entry.window;
    const describe = () => `${holdId}: charged ${charged - reversed} and held ${open} of ${limit} in ${id}`;
    const isWithin = charged - reversed + open <= limit;
    this.recorder.check(isWithin, 'charges and holds of a window stay within the limit of the key', describe);
  }

  private end(data: AuditedEvent['data'], isSettled: boolean): void {
    const { holdId, heldAt, countedAt = heldAt } = data;
    const entry = this.entries.get(holdId);
    if (!entry) return;
    const rule = 'a hold ends with the time at which it was counted';
    this.recorder.checkSame(countedAt, entry.countedAt, rule, `countedAt of ${holdId}`);
    entry.window.open -= entry.amount;
    if (!isSettled) return;
    const charged = parseAmount(data.charged);
    entry.key.usedInAll += charged;
    entry.window.charged += charged;
    entry.window.used += charged;
    const expected = entry.windows === entry.key.windows ? entry.window.id : null;
    const actual = data.countedIn === undefined ? deriveWindow(entry) : data.countedIn;
    this.recorder.checkSame(actual, expected, 'a charge counts in the window of its hold', `the window of ${holdId}`);
  }

  private reverse({ holdId, charged }: AuditedEvent['data']): void {
    const entry = this.entries.get(holdId);
    if (!entry) return;
    const amount = parseAmount(charged);
    entry.key.usedInAll -= amount;
    entry.window.reversed += amount;
    if (entry.countedAt >= entry.key.updatedAt) entry.window.used -= amount;
  }
}

/**
 * Returns the id of the window that readers derive for a charge whose event states none. They know when the key was
 * created.
 * @returns null if it counts in none; undefined if the window must be stated, because the reset period was changed
 */
function deriveWindow({ key, countedAt }: Entry): string | null | undefined {
  if (key.hasNewPeriod) return undefined;
  return countedAt < key.createdAt ? null : formatWindow(key.period, countWindows(key.period, countedAt));
}

/** Returns the number of the window that contains an instant. */
function countWindows(period: string | null, at: string): number {
  const day = Math.floor(toMs(at) / DAY_MS);
  if (period === 'daily') return day;
  if (period === 'weekly') return Math.floor((day + DAYS_SINCE_MONDAY) / 7);
  return period === 'monthly' ? Number(at.slice(0, 4)) * 12 + Number(at.slice(5, 7)) - 1 : 0;
}

function formatWindow(period: string | null, window: number): string {
  if (period === null) return '-';
  const formatDay = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10);
  if (period === 'daily') return `daily:${formatDay(window)}`;
  if (period === 'weekly') return `weekly:${formatDay(window * 7 - DAYS_SINCE_MONDAY)}`;
  const month = String((window % 12) + 1).padStart(2, '0');
  return `monthly:${String(Math.floor(window / 12)).padStart(4, '0')}-${month}-01`;
}

/** In a pattern of model ids, `*` stands for any text. */
function toRegExp(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[^\w]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('[^]*')}$`);
}
