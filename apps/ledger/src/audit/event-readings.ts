/**
 * What the facts that move money say, read by the auditor from what was stored, in the version in which it was stored.
 * None of this is shared with the code that decides, books and upcasts: a mistake in that shows as a difference.
 */
import type { StoredEvent } from '#kernel';
import { type Fraction, reduceFraction } from './fraction.ts';

/** What was used of one thing, and the amounts that were charged for it. */
export interface ChargedPart {
  readonly of: string | null;
  /** Sold in its own name, and not as what was asked for. */
  readonly beside: boolean;
  readonly provider: string;
  readonly creditor: string;
  readonly used: Readonly<Record<string, number>>;
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

/** A price of one unit; an amount that is not known is null. */
export interface Line {
  readonly unit: string;
  readonly cost: Fraction | null;
  readonly price: Fraction | null;
  readonly when: Readonly<Record<string, string | { readonly above: number }>>;
}

export interface TariffReading {
  readonly of: string;
  readonly provider: string;
  readonly creditor: string;
  readonly lines: readonly Line[];
}

export type Reading =
  | { readonly kind: 'prices'; readonly version: string; readonly listed: readonly TariffReading[] }
  | {
      readonly kind: 'credit';
      /** Once for each payment, and once for each time that one was taken back. */
      readonly id: string;
      readonly reversed: boolean;
      readonly method: string;
      readonly paid: bigint;
      readonly bonus: bigint;
    }
  | {
      readonly kind: 'rate';
      readonly method: string;
      /** What was credited, and what it was worth in the market. */
      readonly credited: bigint;
      readonly market: bigint;
    }
  | { readonly kind: 'fee'; readonly id: string; readonly method: string; readonly amount: bigint }
  | { readonly kind: 'hold'; readonly holdId: string; readonly amount: bigint; readonly expiresAt: string }
  | { readonly kind: 'extension'; readonly holdId: string; readonly amount: bigint; readonly by: bigint }
  | { readonly kind: 'kept'; readonly holdId: string; readonly owner: string; readonly expiresAt: string }
  /** A job is over: its hold ended before, and paid so much. */
  | { readonly kind: 'job'; readonly charged: bigint }
  | { readonly kind: 'cost'; readonly provider: string; readonly creditor: string; readonly cost: bigint }
  | {
      readonly kind: 'end';
      readonly holdId: string;
      readonly held: bigint;
      readonly charged: bigint;
      readonly surface: string;
      readonly sale: ChargeReading | null;
    }
  | { readonly kind: 'absorbed'; readonly holdId: string; readonly sale: ChargeReading }
  | ({ readonly kind: 'offer' } & ChallengeOffer)
  /** What was asked for a challenge has come, or something beyond it. */
  | {
      readonly kind: 'payment';
      readonly beyond: boolean;
      readonly method: string;
      readonly units: bigint;
      /** What came is worth so much, and so much of it is owed. */
      readonly worth: bigint;
      readonly owed: bigint;
    }
  | { readonly kind: 'forfeit'; readonly amount: bigint; readonly at: string };

/** What a payment challenge asks for. */
export interface ChallengeOffer {
  readonly coin: string;
  readonly units: bigint;
  /** USD for a coin. */
  readonly rate: string;
  readonly worth: bigint;
  readonly price: bigint;
  readonly priceList: string;
  readonly usableUntil: string;
}

// biome-ignore lint/suspicious/noExplicitAny: stored JSON, of a shape that its version says
type Stored = any;
type Reader = (data: Stored) => Reading | undefined;

/** A reader for each version of each type that moves money or says what it costs; the first is of version 1. */
const READERS: Readonly<Record<string, readonly Reader[]>> = {
  PriceListPublished: [pricesV1, pricesV2],
  CreditAdded: [(data) => credit({ ...data, creditId: `lnd/${data.creditId}` }), credit],
  CreditReversed: [reversal],
  PaymentReceived: [() => undefined, ({ method, amount, market }) => rate(method, amount, market?.amount)],
  PaymentReversed: [({ method, amount, market }) => rate(method, amount, market)],
  PaymentFeeCharged: [fee],
  ChallengeIssued: [offer],
  ChallengePaid: [({ price, ...data }) => payment(data, price, false)],
  ChallengeOverpaid: [(data) => payment(data, data.amount, true)],
  ChallengeForfeited: [({ amount, at }) => ({ kind: 'forfeit', amount: BigInt(amount), at })],
  FundsHeld: [hold],
  HoldExtended: [extension],
  HoldKept: [({ holdId, owner, expiresAt }) => ({ kind: 'kept', holdId, owner, expiresAt })],
  VideoSettled: [({ charged }) => ({ kind: 'job', charged: BigInt(charged) })],
  VideoReleased: [() => ({ kind: 'job', charged: 0n })],
  VideoCostClosed: [({ provider, creditor, cost }) => ({ kind: 'cost', provider, creditor, cost: BigInt(cost) })],
  HoldSettled: [
    (data) => settled(data, saleV1(data.charge, data.query.model)),
    (data) => settled(data, saleV2(data.charge)),
  ],
  HoldReleased: [unused, unused],
  HoldExpired: [unused],
  ChargeAbsorbed: [
    ({ holdId, charge }) => ({ kind: 'absorbed', holdId, sale: saleV1(charge, null) }),
    ({ holdId, charge }) => ({ kind: 'absorbed', holdId, sale: saleV2(charge) }),
  ],
};

/** Undefined for facts that move nothing. @throws Error for a version that the auditor does not know */
export function readStoredEvent({ type, data, metadata }: StoredEvent): Reading | undefined {
  return readAs(type, metadata.version ?? 1, data);
}

/** What a fact says that was upcast; undefined where it was stored as it is. */
export function readUpcastEvent({ metadata }: StoredEvent, today: StoredEvent): Reading | undefined {
  const latest = READERS[today.type]?.length ?? 1;
  return (metadata.version ?? 1) < latest ? readAs(today.type, latest, today.data) : undefined;
}

function readAs(type: string, version: number, data: unknown): Reading | undefined {
  const readers = READERS[type];
  if (!readers) return undefined;
  const reader = readers[version - 1];
  if (!reader) throw new Error(`the auditor does not know version ${version} of ${type}`);
  return reader(data);
}

function credit({ creditId, method, amount, bonus }: Stored): Reading {
  return { kind: 'credit', id: creditId, reversed: false, method, paid: BigInt(amount), bonus: BigInt(bonus) };
}

function reversal({ reversalId, method, amount, bonus }: Stored): Reading {
  const id = `reversal ${reversalId}`;
  return { kind: 'credit', id, reversed: true, method, paid: BigInt(amount), bonus: BigInt(bonus) };
}

function rate(method: string, credited: string, market: string | undefined): Reading | undefined {
  return market === undefined
    ? undefined
    : { kind: 'rate', method, credited: BigInt(credited), market: BigInt(market) };
}

function fee({ payment, feeId, method, amount }: Stored): Reading {
  return { kind: 'fee', id: `${payment.backend}/${payment.id} ${feeId}`, method, amount: BigInt(amount) };
}

function hold({ holdId, amount, expiresAt }: Stored): Reading {
  return { kind: 'hold', holdId, amount: BigInt(amount), expiresAt };
}

function extension({ holdId, amount, by }: Stored): Reading {
  return { kind: 'extension', holdId, amount: BigInt(amount), by: BigInt(by) };
}

function offer({ coin, units, rate, worth, price, priceList, usableUntil }: Stored): Reading {
  const amounts = { units: BigInt(units), worth: BigInt(worth), price: BigInt(price) };
  return { kind: 'offer', coin, rate: rate.value, ...amounts, priceList, usableUntil };
}

function payment({ method, units, amount }: Stored, owed: string, beyond: boolean): Reading {
  return { kind: 'payment', beyond, method, units: BigInt(units), worth: BigInt(amount), owed: BigInt(owed) };
}

function unused({ holdId, held, query }: Stored): Reading {
  return { kind: 'end', holdId, held: BigInt(held), charged: 0n, surface: query.type, sale: null };
}

function settled({ holdId, held, charged, query }: Stored, sale: ChargeReading): Reading {
  return { kind: 'end', holdId, held: BigInt(held), charged: BigInt(charged), surface: query.type, sale };
}

/** One part for all calls of the model together, with what the fees leave of the amounts, and one for each fee. */
function saleV1(charge: Stored, of: string | null): ChargeReading {
  const { provider, usage, calls = 1, estimated, priceList, fees = [] } = charge;
  const [cost, price] = [BigInt(charge.cost), BigInt(charge.price)];
  const parts: ChargedPart[] = fees.map((fee: Stored) => ({
    ...part(fee.name, fee.provider, fee.provider, { search: 1 }),
    beside: true,
    cost: BigInt(fee.cost),
    price: BigInt(fee.price),
  }));
  const left = parts.reduce((rest, each) => ({ cost: rest.cost - each.cost, price: rest.price - each.price }), {
    cost,
    price,
  });
  const called = { ...part(of, provider, provider, { ...usage, request: calls }), estimated, ...left };
  return { parts: calls === 0 ? parts : [called, ...parts], cost, price, priceList };
}

function saleV2({ items, cost, price, priceList }: Stored): ChargeReading {
  const parts = items.map((item: Stored) => ({
    ...part(item.of, item.provider, item.creditor, item.usage),
    beside: item.beside === true,
    terms: item.terms ?? {},
    estimated: item.estimated,
    absorbed: item.absorbed !== undefined,
    cost: BigInt(item.cost),
    price: BigInt(item.price),
  }));
  return { parts, cost: BigInt(cost), price: BigInt(price), priceList };
}

/** Quantities in one order and without those that are 0, so that what says the same looks the same. */
function part(
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
  const plain = { beside: false, terms: {}, estimated: false, absorbed: false, cost: 0n, price: 0n };
  return { of, provider, creditor, used, ...plain };
}

function pricesV1({ version, rates, units = [], fees = [] }: Stored): Reading {
  const listed = [...rates.map(tokensV1), ...units.map(mediaV1), ...fees.map(feeV1)];
  return { kind: 'prices', version, listed };
}

const PER_MILLION = ['input', 'cacheRead', 'cacheWrite', 'output', 'reasoning'];

function tokensV1({ model, provider, marginBasisPoints, ...rates }: Stored): TariffReading {
  const tokens = PER_MILLION.map((unit) => lineV1(unit, rates[unit], 1_000_000, marginBasisPoints));
  return {
    of: model,
    provider,
    creditor: provider,
    lines: [...tokens, lineV1('request', rates.request, 1, marginBasisPoints)],
  };
}

/** Units of before: what they are counted in, and how much of that they were. */
const MEDIA_V1: Readonly<Record<string, readonly [string, number]>> = {
  image: ['image', 1],
  second: ['videoSecond', 1],
  clip: ['clip', 1],
  minute: ['audioMillisecond', 60_000],
  '1k_characters': ['character', 1_000],
};

function mediaV1({ model, provider, unit, amount, variants, marginBasisPoints }: Stored): TariffReading {
  const [counted, per] = MEDIA_V1[unit] ?? [unit, 1];
  const lines = [...variants, { amount, when: {} }].map((each: Stored) => ({
    ...lineV1(counted, each.amount, per, marginBasisPoints),
    when: each.when,
  }));
  return { of: model, provider, creditor: provider, lines };
}

function feeV1({ name, provider, cost, price }: Stored): TariffReading {
  const line = {
    unit: 'search',
    cost: reduceFraction(BigInt(cost), 1n),
    price: reduceFraction(BigInt(price), 1n),
    when: {},
  };
  return { of: name, provider, creditor: provider, lines: [line] };
}

function lineV1(unit: string, rate: string, per: number, marginBasisPoints: number): Line {
  const cost = reduceFraction(BigInt(rate), BigInt(per));
  const price = reduceFraction(BigInt(rate) * BigInt(marginBasisPoints), BigInt(per) * 10_000n);
  return { unit, cost, price, when: {} };
}

function pricesV2({ version, lines }: Stored): Reading {
  const listed = lines.map(({ of, provider, creditor, prices }: Stored) => ({
    of,
    provider,
    creditor,
    lines: prices.map(lineV2),
  }));
  return { kind: 'prices', version, listed };
}

function lineV2({ unit, per, cost, price, when = {} }: Stored): Line {
  const each = (amount: string | undefined) =>
    amount === undefined ? null : reduceFraction(BigInt(amount), BigInt(per));
  return { unit, cost: each(cost), price: each(price), when };
}
