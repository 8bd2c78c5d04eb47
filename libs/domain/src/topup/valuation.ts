/**
 * The value of a payment. An invoice guarantees its exchange rate only for the amount that it requests, and a method
 * limits what is credited without a person. So a payment can have parts of different values.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { Instant } from '../value-types.ts';
import type { Destination, InvoiceIssued, PaymentPart, PaymentReceived, RateUsed } from './events.ts';

/** A timely payment to an address gets the rate of its invoice if it is final at most this long after the expiry. */
const MAX_CONFIRMATION_DELAY_MS = 2 * 3_600_000;
/** By how much the payments of an invoice may exceed it and still have its rate and bonus: wallets round amounts up. */
const TOLERANCE_PERCENT = 1n;

/** The amounts of one or more parts of a payment. */
export interface PartAmounts {
  /** Credited, without the bonus. */
  readonly amount: PicoUsd;
  readonly bonus: PicoUsd;
  /** Not credited, but owed to the customer. */
  readonly excess: PicoUsd;
}

/** A final payment that is to be valued. */
export interface ValuablePayment {
  readonly units: bigint;
  readonly receivedAt: Instant;
  /** Its value at the market rate. */
  readonly market?: { readonly rate: RateUsed; readonly amount: PicoUsd };
  /** What the method credits at most for one invoice without a person. The requested amount is always credited. */
  readonly maxAmount: PicoUsd;
  readonly at: Instant;
}

/** What preceded a payment of the same invoice. */
export interface EarlierPayments {
  /** Units of the received payments, except lost ones. */
  readonly units: bigint;
  /** What was credited for them, without bonuses. */
  readonly credited: PicoUsd;
  /** Whether the payment was first seen after another one was lost, which it may replace. */
  readonly hasReplaced: boolean;
}

type Value = Pick<PaymentReceived['data'], 'amount' | 'bonus' | 'rate' | 'excess' | 'parts' | 'market'>;

/**
 * Values a payment:
 * - Up to the requested amount, counted over all payments of the invoice: at the rate of the invoice, or at the market
 *   rate if the payment is late. This part has the bonus.
 * - Beyond it: at the lower of both rates, without a bonus. Otherwise the invoice would be an option, free and without
 *   a limit, to sell coins at its rate.
 * - If the payment may replace a lost one: at the lower of both rates. Otherwise its sender could wait for the market
 *   and choose.
 * - What exceeds the maximum of the method is not credited: it is owed until a person decides.
 * @throws Error if the value depends on the market rate, and the payment has none
 */
export function valuePayment(
  payment: ValuablePayment,
  invoice: InvoiceIssued['data'],
  earlier: EarlierPayments,
): Value {
  const { units, market, maxAmount } = payment;
  const requestedUnits = addTolerance(BigInt(invoice.units));
  const invoicedUnits = clamp(requestedUnits - earlier.units, units);
  const rates = { invoice, market, units };
  const requestedAmount = addTolerance(money.parseJsonAmount(invoice.usd)) as PicoUsd;
  const usesMarketRate = isCreditedAtMarketRate(
    { expiresAt: invoice.expiresAt, kind: invoice.destination.kind },
    payment,
  );
  const invoicedAt = earlier.hasReplaced ? valueAtLowerRate : usesMarketRate ? valueAtMarketRate : valueAtInvoiceRate;
  const valued: ValuedUnits[] = [];
  if (invoicedUnits > 0n)
    valued.push({ ...invoicedAt(invoicedUnits, rates), bonusPercent: BigInt(invoice.bonusPercent) });
  if (units > invoicedUnits) valued.push(valueAtLowerRate(units - invoicedUnits, rates));
  const maxCredit = money.subtract(money.max(maxAmount, requestedAmount), earlier.credited);
  return toValue(limitCredit(valued, maxCredit), market);
}

/**
 * Whether a payment is credited at the market rate, not at the rate of its invoice. This applies to payments after the
 * expiry, and to payments to an address that become final too long after it. The sender of the latter could wait for
 * the market and then decide, by the fee or by a replacement, whether the payment is confirmed.
 */
function isCreditedAtMarketRate(
  { expiresAt, kind }: { readonly expiresAt: Instant; readonly kind: Destination['kind'] },
  { receivedAt, at }: Pick<ValuablePayment, 'receivedAt' | 'at'>,
): boolean {
  if (receivedAt > expiresAt) return true;
  return kind === 'address' && Date.parse(at) > Date.parse(expiresAt) + MAX_CONFIRMATION_DELAY_MS;
}

interface Rates {
  readonly invoice: InvoiceIssued['data'];
  readonly market: ValuablePayment['market'];
  /** The units of all of the payment, which have the market value. */
  readonly units: bigint;
}

interface ValuedUnits {
  readonly units: bigint;
  readonly amount: PicoUsd;
  readonly rate: RateUsed;
  readonly bonusPercent?: bigint;
}

/** An exact payment has exactly the invoiced value; another amount has a proportional value. */
function valueAtInvoiceRate(units: bigint, { invoice }: Rates): ValuedUnits {
  const amount = ((money.parseJsonAmount(invoice.usd) * units) / BigInt(invoice.units)) as PicoUsd;
  return { units, amount, rate: invoice.rate };
}

function valueAtMarketRate(units: bigint, { market, units: allUnits }: Rates): ValuedUnits {
  if (!market) throw new Error('the payment cannot be valued without a rate');
  return { units, amount: ((market.amount * units) / allUnits) as PicoUsd, rate: market.rate };
}

function valueAtLowerRate(units: bigint, rates: Rates): ValuedUnits {
  const [invoiced, market] = [valueAtInvoiceRate(units, rates), valueAtMarketRate(units, rates)];
  return market.amount < invoiced.amount ? market : invoiced;
}

/** Splits the parts where the credit reaches `maxCredit`. The rest is excess. */
function limitCredit(parts: readonly ValuedUnits[], maxCredit: PicoUsd): readonly PaymentPart[] {
  let remaining = money.max(maxCredit, ZERO_USD);
  return parts.flatMap(({ units, amount, rate, bonusPercent = 0n }) => {
    const creditedUnits = amount <= remaining ? units : (units * remaining) / amount;
    const credited = (amount === 0n ? amount : (amount * creditedUnits) / units) as PicoUsd;
    remaining = creditedUnits < units ? ZERO_USD : money.subtract(remaining, credited);
    const bonus = (credited * bonusPercent) / 100n;
    const creditedPart = toPart(creditedUnits, credited, bonus, rate);
    const excessPart = { ...toPart(units - creditedUnits, money.subtract(amount, credited), 0n, rate), isExcess: true };
    return [creditedPart, excessPart as PaymentPart].filter((part) => part.units !== '0');
  });
}

function toPart(units: bigint, amount: bigint, bonus: bigint, rate: RateUsed): PaymentPart {
  return { units: units.toString(), amount: amount.toString(), bonus: bonus.toString(), rate };
}

function toValue(parts: readonly PaymentPart[], market: ValuablePayment['market']): Value {
  const [first] = parts;
  if (!first) throw new Error('a payment without units has no value');
  const units = parts.reduce((sum, part) => sum + BigInt(part.units), 0n);
  const { amount, bonus, excess } = calculatePartAmounts(parts, units);
  return {
    amount: money.toJsonAmount(amount),
    bonus: money.toJsonAmount(bonus),
    rate: first.rate,
    ...(excess > 0n ? { excess: money.toJsonAmount(excess) } : {}),
    ...(parts.length > 1 || first.isExcess ? { parts } : {}),
    ...(market && market.amount !== amount + excess
      ? { market: { ...market, amount: money.toJsonAmount(market.amount) } }
      : {}),
  };
}

/** Returns the parts of a received payment; one part if the event has none. */
export function listParts({ units, amount, bonus, rate, parts }: PaymentReceived['data']): readonly PaymentPart[] {
  return parts ?? [{ units, amount, bonus, rate }];
}

/**
 * Returns the amounts of the first `units` units of a payment; with negative units, the negative amounts of as many.
 * The differences of this function sum to exactly the amounts of the payment, however it is divided.
 */
export function calculatePartAmounts(parts: readonly PaymentPart[], units: bigint): PartAmounts {
  if (units < 0n) {
    const { amount, bonus, excess } = calculatePartAmounts(parts, -units);
    return { amount: money.negate(amount), bonus: money.negate(bonus), excess: money.negate(excess) };
  }
  let remaining = units;
  let [amount, bonus, excess] = [0n, 0n, 0n];
  for (const part of parts) {
    const partUnits = BigInt(part.units);
    const included = clamp(remaining, partUnits);
    const share = (BigInt(part.amount) * included) / partUnits;
    if (part.isExcess) excess += share;
    else amount += share;
    bonus += (BigInt(part.bonus) * included) / partUnits;
    remaining -= included;
  }
  return { amount: amount as PicoUsd, bonus: bonus as PicoUsd, excess: excess as PicoUsd };
}

/**
 * Returns the parts after a person has credited the excess among the first `units` units. What was reversed of the
 * excess before stays excess.
 */
export function creditExcess(parts: readonly PaymentPart[], units: bigint): readonly PaymentPart[] {
  let remaining = units;
  return parts.flatMap((part) => {
    const partUnits = BigInt(part.units);
    const included = clamp(remaining, partUnits);
    remaining -= included;
    if (!part.isExcess) return [part];
    const amount = (BigInt(part.amount) * included) / partUnits;
    const { rate } = part;
    const rest = { ...toPart(partUnits - included, BigInt(part.amount) - amount, 0n, rate), isExcess: true as const };
    return [toPart(included, amount, 0n, rate), rest].filter(({ units }) => units !== '0');
  });
}

function clamp(units: bigint, max: bigint): bigint {
  if (units < 0n) return 0n;
  return units < max ? units : max;
}

function addTolerance(amount: bigint): bigint {
  return amount + (amount * TOLERANCE_PERCENT) / 100n;
}
