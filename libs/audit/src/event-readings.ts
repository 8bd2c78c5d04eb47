/**
 * Reads the events that concern money or prices, with a reader for each version. The readers share no code with the
 * deciders, the postings and the upcasters of the service, so that a mistake there is found as a difference.
 */
import type { StoredEvent } from '#kernel';
import { type Fraction, reduceFraction } from './fraction.ts';

/** Usage of one model or service, with its cost and price. */
export interface ChargedPart {
  readonly of: string | null;
  /** True for usage that is sold under its own name, such as a web search, and not as the requested model. */
  readonly beside: boolean;
  readonly provider: string;
  readonly creditor: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly terms: Readonly<Record<string, string | number>>;
  readonly estimated: boolean;
  readonly absorbed: boolean;
  readonly cost: bigint;
  readonly price: bigint;
}

export interface ChargeReading {
  readonly parts: readonly ChargedPart[];
  readonly cost: bigint;
  readonly price: bigint;
  readonly priceList: string;
}

/** Cost and price per unit. `cost` is null if no provider invoices the unit, and `price` is null if it is not sold. */
export interface TariffLine {
  readonly unit: string;
  readonly cost: Fraction | null;
  readonly price: Fraction | null;
  readonly when: Readonly<Record<string, string | { readonly above: number }>>;
}

export interface TariffReading {
  readonly of: string;
  readonly provider: string;
  readonly creditor: string;
  readonly lines: readonly TariffLine[];
}

export type EventReading =
  | { readonly kind: 'prices'; readonly version: string; readonly tariffs: readonly TariffReading[] }
  | {
      readonly kind: 'credit';
      /** Unique for each payment and for each reversal. */
      readonly id: string;
      readonly reversed: boolean;
      readonly method: string;
      readonly paid: bigint;
      readonly bonus: bigint;
    }
  /** A credit or debit by the operator. */
  | { readonly kind: 'adjustment'; readonly id: string; readonly amount: bigint; readonly reverses: string | undefined }
  | {
      /** A payment or its reversal, apart from the credit in the account. */
      readonly kind: 'topup';
      readonly method: string;
      readonly credited: bigint;
      /** What exceeds the maximum of the method. */
      readonly excess: bigint;
      /** The market value of both together. */
      readonly market: bigint;
    }
  /** Excess that a person has credited. */
  | { readonly kind: 'excess'; readonly method: string; readonly amount: bigint }
  | { readonly kind: 'fee'; readonly id: string; readonly method: string; readonly amount: bigint }
  | { readonly kind: 'hold'; readonly holdId: string; readonly amount: bigint; readonly expiresAt: string }
  | { readonly kind: 'extension'; readonly holdId: string; readonly amount: bigint; readonly by: bigint }
  | { readonly kind: 'kept'; readonly holdId: string; readonly owner: string; readonly expiresAt: string }
  /** A job ended. `charged` is the amount that, according to the event, was charged from its hold. */
  | { readonly kind: 'job'; readonly charged: bigint }
  | { readonly kind: 'cost'; readonly provider: string; readonly creditor: string; readonly cost: bigint }
  | {
      readonly kind: 'end';
      readonly holdId: string;
      readonly held: bigint;
      readonly charged: bigint;
      readonly surface: string;
      readonly charge: ChargeReading | null;
    }
  | { readonly kind: 'reversal'; readonly holdId: string; readonly charged: bigint }
  | { readonly kind: 'absorbed'; readonly holdId: string; readonly charge: ChargeReading }
  | ({ readonly kind: 'offer' } & ChallengeOffer)
  /** The payment of a challenge, or an overpayment. */
  | {
      readonly kind: 'payment';
      readonly isOverpayment: boolean;
      readonly method: string;
      readonly units: bigint;
      /** The value of the units at the rate of the challenge, in pico-USD. */
      readonly worth: bigint;
      /** What the payer is owed for the units, in pico-USD. */
      readonly owed: bigint;
    }
  | { readonly kind: 'forfeit'; readonly amount: bigint; readonly at: string };

export interface ChallengeOffer {
  readonly coin: string;
  readonly units: bigint;
  /** USD per coin. */
  readonly rate: string;
  readonly worth: bigint;
  readonly price: bigint;
  readonly priceList: string;
  readonly usableUntil: string;
}

// biome-ignore lint/suspicious/noExplicitAny: stored JSON, in the format of its version
type StoredData = any;
type DataReader = (data: StoredData) => EventReading | undefined;

/** Readers by event type: one for each version, starting with version 1. */
const READERS: Readonly<Record<string, readonly DataReader[]>> = {
  PriceListPublished: [readPricesV1, readPricesV2],
  CreditAdded: [(data) => readCredit({ ...data, creditId: `lnd/${data.creditId}` }), readCredit],
  CreditReversed: [readReversal],
  BalanceAdjusted: [
    ({ adjustmentId, amount, reverses }) => ({
      kind: 'adjustment',
      id: adjustmentId,
      amount: BigInt(amount),
      reverses,
    }),
  ],
  PaymentReceived: [(data) => readTopupPayment(data, undefined), (data) => readTopupPayment(data, data.market?.amount)],
  PaymentReversed: [(data) => readTopupPayment(data, data.market)],
  ExcessCredited: [({ method, amount }) => ({ kind: 'excess', method, amount: BigInt(amount) })],
  PaymentFeeCharged: [readPaymentFee],
  ChallengeIssued: [readChallengeOffer],
  ChallengePaid: [({ price, ...data }) => readPayment(data, price, false)],
  ChallengeOverpaid: [(data) => readPayment(data, data.amount, true)],
  ChallengeForfeited: [({ amount, at }) => ({ kind: 'forfeit', amount: BigInt(amount), at })],
  FundsHeld: [readHold],
  HoldExtended: [readExtension],
  HoldKept: [({ holdId, owner, expiresAt }) => ({ kind: 'kept', holdId, owner, expiresAt })],
  VideoSettled: [({ charged }) => ({ kind: 'job', charged: BigInt(charged) })],
  VideoReleased: [() => ({ kind: 'job', charged: 0n })],
  VideoCostClosed: [({ provider, creditor, cost }) => ({ kind: 'cost', provider, creditor, cost: BigInt(cost) })],
  HoldSettled: [
    (data) => readSettledHold(data, readChargeV1(data.charge, data.query.model)),
    (data) => readSettledHold(data, readChargeV2(data.charge)),
  ],
  HoldReleased: [readUnusedHold, readUnusedHold],
  HoldExpired: [readUnusedHold],
  ChargeReversed: [({ holdId, charged }) => ({ kind: 'reversal', holdId, charged: BigInt(charged) })],
  ChargeAbsorbed: [
    ({ holdId, charge }) => ({ kind: 'absorbed', holdId, charge: readChargeV1(charge, null) }),
    ({ holdId, charge }) => ({ kind: 'absorbed', holdId, charge: readChargeV2(charge) }),
  ],
};

/**
 * @returns undefined for events that have nothing to audit
 * @throws Error for an event that its reader cannot read, or whose version has no reader
 */
export function readStoredEvent({ type, data, metadata }: StoredEvent): EventReading | undefined {
  return readVersion(type, metadata.version ?? 1, data);
}

/**
 * Reads the latest version of an event after upcasting.
 * @returns undefined if it was stored in that version, or has nothing to audit
 */
export function readUpcastEvent({ metadata }: StoredEvent, current: StoredEvent): EventReading | undefined {
  const latest = READERS[current.type]?.length ?? 1;
  return (metadata.version ?? 1) < latest ? readVersion(current.type, latest, current.data) : undefined;
}

function readVersion(type: string, version: number, data: unknown): EventReading | undefined {
  const readers = READERS[type];
  if (!readers) return undefined;
  const reader = readers[version - 1];
  if (!reader) throw new Error(`the auditor does not know version ${version} of ${type}`);
  return reader(data);
}

function readCredit({ creditId, method, amount, bonus }: StoredData): EventReading {
  return { kind: 'credit', id: creditId, reversed: false, method, paid: BigInt(amount), bonus: BigInt(bonus) };
}

function readReversal({ reversalId, method, amount, bonus }: StoredData): EventReading {
  const id = `reversal ${reversalId}`;
  return { kind: 'credit', id, reversed: true, method, paid: BigInt(amount), bonus: BigInt(bonus) };
}

function readTopupPayment({ method, amount, excess = 0 }: StoredData, market: string | undefined): EventReading {
  const [credited, owed] = [BigInt(amount), BigInt(excess)];
  return {
    kind: 'topup',
    method,
    credited,
    excess: owed,
    market: market === undefined ? credited + owed : BigInt(market),
  };
}

function readPaymentFee({ payment, feeId, method, amount }: StoredData): EventReading {
  return { kind: 'fee', id: `${payment.backend}/${payment.id} ${feeId}`, method, amount: BigInt(amount) };
}

function readHold({ holdId, amount, expiresAt }: StoredData): EventReading {
  return { kind: 'hold', holdId, amount: BigInt(amount), expiresAt };
}

function readExtension({ holdId, amount, by }: StoredData): EventReading {
  return { kind: 'extension', holdId, amount: BigInt(amount), by: BigInt(by) };
}

function readChallengeOffer({ coin, units, rate, worth, price, priceList, usableUntil }: StoredData): EventReading {
  return {
    kind: 'offer',
    coin,
    rate: rate.value,
    units: BigInt(units),
    worth: BigInt(worth),
    price: BigInt(price),
    priceList,
    usableUntil,
  };
}

function readPayment({ method, units, amount }: StoredData, owed: string, isOverpayment: boolean): EventReading {
  return { kind: 'payment', isOverpayment, method, units: BigInt(units), worth: BigInt(amount), owed: BigInt(owed) };
}

function readUnusedHold({ holdId, held, query }: StoredData): EventReading {
  return { kind: 'end', holdId, held: BigInt(held), charged: 0n, surface: query.type, charge: null };
}

function readSettledHold({ holdId, held, charged, query }: StoredData, charge: ChargeReading): EventReading {
  return { kind: 'end', holdId, held: BigInt(held), charged: BigInt(charged), surface: query.type, charge };
}

/** Returns one part for each fee. If the model was called, another part has all its calls and the remaining amounts. */
function readChargeV1(charge: StoredData, of: string | null): ChargeReading {
  const { provider, usage, calls = 1, estimated, priceList, fees = [] } = charge;
  const [cost, price] = [BigInt(charge.cost), BigInt(charge.price)];
  const parts: ChargedPart[] = fees.map((fee: StoredData) => ({
    ...toPart(fee.name, fee.provider, fee.provider, { search: 1 }),
    beside: true,
    cost: BigInt(fee.cost),
    price: BigInt(fee.price),
  }));
  const remaining = parts.reduce((rest, part) => ({ cost: rest.cost - part.cost, price: rest.price - part.price }), {
    cost,
    price,
  });
  const callPart = { ...toPart(of, provider, provider, { ...usage, request: calls }), estimated, ...remaining };
  return { parts: calls === 0 ? parts : [callPart, ...parts], cost, price, priceList };
}

function readChargeV2({ items, cost, price, priceList }: StoredData): ChargeReading {
  const parts = items.map((item: StoredData) => ({
    ...toPart(item.of, item.provider, item.creditor, item.usage),
    beside: item.beside === true,
    terms: item.terms ?? {},
    estimated: item.estimated,
    absorbed: item.absorbed !== undefined,
    cost: BigInt(item.cost),
    price: BigInt(item.price),
  }));
  return { parts, cost: BigInt(cost), price: BigInt(price), priceList };
}

/** Sorts the quantities by unit and drops those that are 0, so that equal usages have equal representations. */
function toPart(
  of: string | null,
  provider: string,
  creditor: string,
  usage: Readonly<Record<string, number>>,
): ChargedPart {
  const used = Object.fromEntries(
    Object.entries(usage)
      .filter(([, quantity]) => quantity !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  return {
    of,
    provider,
    creditor,
    usage: used,
    beside: false,
    terms: {},
    estimated: false,
    absorbed: false,
    cost: 0n,
    price: 0n,
  };
}

function readPricesV1({ version, rates, units = [], fees = [] }: StoredData): EventReading {
  const tariffs = [...rates.map(readTokensV1), ...units.map(readMediaV1), ...fees.map(readFeeV1)];
  return { kind: 'prices', version, tariffs };
}

const UNITS_PRICED_PER_MILLION = ['input', 'cacheRead', 'cacheWrite', 'output', 'reasoning'];

function readTokensV1({ model, provider, marginBasisPoints, ...rates }: StoredData): TariffReading {
  const tokens = UNITS_PRICED_PER_MILLION.map((unit) => readLineV1(unit, rates[unit], 1_000_000, marginBasisPoints));
  return {
    of: model,
    provider,
    creditor: provider,
    lines: [...tokens, readLineV1('request', rates.request, 1, marginBasisPoints)],
  };
}

/** The current unit for each media unit of version 1, and how many current units the old one contains. */
const MEDIA_UNITS_V1: Readonly<Record<string, readonly [string, number]>> = {
  image: ['image', 1],
  second: ['videoSecond', 1],
  clip: ['clip', 1],
  minute: ['audioMillisecond', 60_000],
  '1k_characters': ['character', 1_000],
};

function readMediaV1({ model, provider, unit, amount, variants, marginBasisPoints }: StoredData): TariffReading {
  const [currentUnit, per] = MEDIA_UNITS_V1[unit] ?? [unit, 1];
  const lines = [...variants, { amount, when: {} }].map((variant: StoredData) => ({
    ...readLineV1(currentUnit, variant.amount, per, marginBasisPoints),
    when: variant.when,
  }));
  return { of: model, provider, creditor: provider, lines };
}

function readFeeV1({ name, provider, cost, price }: StoredData): TariffReading {
  const line = {
    unit: 'search',
    cost: reduceFraction(BigInt(cost), 1n),
    price: reduceFraction(BigInt(price), 1n),
    when: {},
  };
  return { of: name, provider, creditor: provider, lines: [line] };
}

function readLineV1(unit: string, rate: string, per: number, marginBasisPoints: number): TariffLine {
  const cost = reduceFraction(BigInt(rate), BigInt(per));
  const price = reduceFraction(BigInt(rate) * BigInt(marginBasisPoints), BigInt(per) * 10_000n);
  return { unit, cost, price, when: {} };
}

function readPricesV2({ version, lines }: StoredData): EventReading {
  const tariffs = lines.map(({ of, provider, creditor, prices }: StoredData) => ({
    of,
    provider,
    creditor,
    lines: prices.map(readLineV2),
  }));
  return { kind: 'prices', version, tariffs };
}

function readLineV2({ unit, per, cost, price, when = {} }: StoredData): TariffLine {
  const toUnitAmount = (amount: string | undefined) =>
    amount === undefined ? null : reduceFraction(BigInt(amount), BigInt(per));
  return { unit, cost: toUnitAmount(cost), price: toUnitAmount(price), when };
}
