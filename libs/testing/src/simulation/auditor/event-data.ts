/** The events as the auditor reads them: plain JSON, with types of its own. */
import type { Message, StoredEvent } from '#kernel';

export interface ChargeData {
  readonly items: readonly {
    readonly of: string | null;
    readonly beside?: boolean;
    readonly provider: string;
    readonly creditor: string;
    readonly cost: string;
    readonly price: string;
  }[];
  readonly cost: string;
  readonly price: string;
  readonly priceList: string;
}

export interface PaymentPartData {
  readonly units: string;
  readonly amount: string;
  readonly bonus: string;
  readonly isExcess?: boolean;
}

interface HoldReference {
  readonly holdId: string;
  readonly payer: string;
  readonly amount: string;
}

/**
 * The fields of all events that the rules read. Amounts are decimal strings of pico-USD, `units` decimal strings of a
 * coin's smallest unit, instants ISO 8601. A field of this type is present only in some events.
 */
export interface EventData {
  readonly at: string;
  readonly accountId: string;
  readonly keyId: string | null;
  readonly name: string;
  readonly limit?: string | null;
  readonly resetPeriod?: string | null;
  readonly expireAt?: string | null;
  readonly models?: readonly string[] | null;
  readonly blocked?: boolean;
  readonly creditId: string;
  readonly reversalId: string;
  readonly adjustmentId: string;
  readonly reverses?: string;
  readonly method: string;
  readonly amount: string;
  readonly bonus: string;
  readonly holdId: string;
  readonly by: string;
  readonly owner?: string;
  readonly expiresAt: string;
  readonly query: { readonly model: string; readonly type: string };
  readonly held: string;
  readonly heldAt: string;
  readonly countedAt?: string;
  readonly countedIn?: string | null;
  readonly charged: string;
  readonly charge: ChargeData;
  readonly errorCode: string;
  readonly price: string;
  readonly worth: string;
  readonly units: string;
  readonly backend: string;
  readonly paymentHash: string;
  readonly usableUntil: string;
  readonly payment: { readonly backend: string; readonly id: string };
  readonly claimant: string;
  readonly topupId: string;
  readonly usd: string;
  readonly destination: { readonly kind: string };
  readonly bonusPercent: number;
  readonly receivedAt: string;
  readonly excess?: string;
  readonly parts?: readonly PaymentPartData[];
  /** An amount in `PaymentReversed`, an object in `PaymentReceived`. */
  readonly market?: string | { readonly amount: string };
  readonly isContested?: boolean;
  readonly feeId: string;
  readonly attempt: number;
  /** The number of the request to a wallet. */
  readonly request: number;
  readonly token: number;
  /** A public key in `WalletAsked`, an object in `WalletConnected`. */
  readonly wallet: string | { readonly pubkey: string };
  readonly threshold: string;
  readonly balance: string;
  readonly outcome: string;
  readonly code: string;
  readonly until: string;
  readonly hold: HoldReference;
  readonly endpoints: readonly unknown[];
  readonly deadline: string;
  readonly submission: number;
  readonly endpoint: number;
  readonly fetch: number;
  readonly absorbed?: ChargeData;
  readonly open?: { readonly provider: string; readonly creditor: string; readonly most: string };
  readonly provider: string;
  readonly creditor: string;
  readonly cost: string;
  readonly version: string;
  readonly requestId: string;
}

export type AuditedEvent = StoredEvent<Message<string, EventData>>;

/** @throws RangeError if the text is not an integer */
export function parseAmount(text: string): bigint {
  if (!/^-?\d+$/.test(text)) throw new RangeError(`not an integer amount: ${text}`);
  return BigInt(text);
}

export function sumAmounts(amounts: Iterable<bigint>): bigint {
  let sum = 0n;
  for (const amount of amounts) sum += amount;
  return sum;
}

/** Returns milliseconds since the epoch. */
export function toMs(instant: string): number {
  return Date.parse(instant);
}

/** Returns the part of the name of a stream after its category. */
export function toStreamId(stream: string): string {
  return stream.slice(stream.indexOf('-') + 1);
}

/** Returns the entry of a map, which is created if it is missing. */
export function getOrCreate<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const created = create();
  map.set(key, created);
  return created;
}
