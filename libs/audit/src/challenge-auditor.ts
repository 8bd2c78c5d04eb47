/** Audits challenges: each pays for one request at a time, and is charged at most what was paid. */

import type { ChallengeOffer, EventReading } from './event-readings.ts';
import { reduceFraction } from './fraction.ts';

/** Challenges require integral satoshis, but their `units` are millisatoshis. */
const MSAT_PER_SATOSHI = 1_000n;
const UNITS_PER_COIN: Readonly<Record<string, bigint>> = { BTC: 100_000_000n * MSAT_PER_SATOSHI };
const PICO_USD_PER_USD = 10n ** 12n;

interface Challenge {
  readonly terms: ChallengeOffer;
  paid: bigint;
  held: bigint;
  charged: bigint;
  forfeited: bigint;
  readonly openHoldIds: Set<string>;
}

export class ChallengeAuditor {
  private readonly challenges = new Map<string, Challenge>();

  /** @param report receives the contradictions, with the stream of the challenge */
  constructor(private readonly report: (difference: string) => void) {}

  /** Number of paid challenges, and the sum of their held and owed amounts in pico-USD. */
  get owedTotals(): { readonly paid: number; readonly amount: bigint } {
    const paid = [...this.challenges.values()].filter((challenge) => challenge.paid > 0n);
    return {
      paid: paid.length,
      amount: paid.reduce((sum, challenge) => sum + calculateRemaining(challenge) + challenge.held, 0n),
    };
  }

  /** Applies an event to a challenge, and reports contradictions. @param stream the stream of the challenge */
  check(stream: string, reading: EventReading): void {
    const challenge = this.challenges.get(stream);
    const reportProblem = (what: string) => this.report(`${stream} ${what}`);
    if (reading.kind !== 'offer') {
      if (challenge) checkReading(reading, challenge, reportProblem);
      else reportProblem('was never issued');
    } else if (challenge) reportProblem('was issued twice');
    else {
      checkRounding(reading, reportProblem);
      this.challenges.set(stream, {
        terms: reading,
        paid: 0n,
        held: 0n,
        charged: 0n,
        forfeited: 0n,
        openHoldIds: new Set(),
      });
    }
  }
}

type ReportProblem = (what: string) => void;

function checkReading(reading: EventReading, challenge: Challenge, reportProblem: ReportProblem): void {
  const { terms, openHoldIds } = challenge;
  switch (reading.kind) {
    case 'payment':
      if (reading.isOverpayment ? !isProportionalOverpayment(reading, challenge) : !isExpectedPayment(reading, terms))
        reportProblem('was paid with other amounts than required');
      if (!reading.isOverpayment && challenge.paid > 0n) reportProblem('was paid twice');
      challenge.paid += reading.owed;
      break;
    case 'hold':
      if (challenge.paid === 0n) reportProblem('was claimed before it was paid');
      if (challenge.forfeited > 0n) reportProblem('was claimed after it was forfeited');
      if (openHoldIds.size > 0) reportProblem('was claimed while a request that it pays for was running');
      openHoldIds.add(reading.holdId);
      challenge.held += reading.amount;
      break;
    case 'end':
      openHoldIds.delete(reading.holdId);
      challenge.held -= reading.held;
      challenge.charged += reading.charged;
      if (challenge.charged > challenge.paid) reportProblem('was charged more than was paid');
      if (reading.charge && reading.charge.priceList !== terms.priceList)
        reportProblem(`was charged with price list ${reading.charge.priceList}, but issued with ${terms.priceList}`);
      break;
    case 'reversal':
      challenge.charged -= reading.charged;
      break;
    case 'forfeit':
      if (reading.amount !== calculateRemaining(challenge))
        reportProblem('was forfeited with another amount than the remaining one');
      if (openHoldIds.size > 0 || reading.at <= terms.usableUntil)
        reportProblem('was forfeited while it could be used');
      challenge.forfeited += reading.amount;
      break;
    default:
      break;
  }
}

function calculateRemaining({ paid, held, charged, forfeited }: Challenge): bigint {
  return paid - held - charged - forfeited;
}

/** Checks that the units are the price rounded up to a satoshi, and that `worth` is their value at the rate. */
function checkRounding({ coin, units, rate, worth, price }: ChallengeOffer, reportProblem: ReportProblem): void {
  const perCoin = UNITS_PER_COIN[coin];
  if (perCoin === undefined) {
    reportProblem(`is paid in the unknown coin ${coin}`);
    return;
  }
  const { numerator, denominator } = parseDecimal(rate);
  const calculateUsdValue = (quantity: bigint) => (quantity * numerator * PICO_USD_PER_USD) / (denominator * perCoin);
  if (worth !== calculateUsdValue(units)) reportProblem('has an amount that does not match its rate');
  if (units % MSAT_PER_SATOSHI !== 0n || worth < price || calculateUsdValue(units - MSAT_PER_SATOSHI) >= price)
    reportProblem('has an amount that is not its price rounded up to a satoshi');
}

function isExpectedPayment(
  { units, worth, owed }: Extract<EventReading, { kind: 'payment' }>,
  terms: ChallengeOffer,
): boolean {
  return units === terms.units && worth === terms.worth && owed === terms.price;
}

/** Checks that an overpayment follows a payment, and is owed in full at the rate of the challenge. */
function isProportionalOverpayment(
  { units, worth, owed }: Extract<EventReading, { kind: 'payment' }>,
  { terms, paid }: Challenge,
): boolean {
  return paid > 0n && owed === worth && worth === (terms.worth * units) / terms.units;
}

function parseDecimal(text: string) {
  const [integer = '', part = ''] = text.split('.');
  return reduceFraction(BigInt(integer + part), 10n ** BigInt(part.length));
}
