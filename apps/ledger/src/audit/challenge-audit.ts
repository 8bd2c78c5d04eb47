/** The auditor's judgement of payment challenges: each pays for one request, with what was paid for it and nothing more. */

import type { ChallengeOffer, Reading } from './event-readings.ts';
import { reduceFraction } from './fraction.ts';

/** What payments over Lightning are made in: a satoshi, in millisatoshis. */
const SATOSHI = 1_000n;
const UNITS_PER_COIN: Readonly<Record<string, bigint>> = { BTC: 100_000_000n * SATOSHI };
const PICO_USD = 10n ** 12n;

interface Challenge {
  readonly offer: ChallengeOffer;
  paid: bigint;
  held: bigint;
  charged: bigint;
  forfeited: bigint;
  readonly open: Set<string>;
}

export class ChallengeAudit {
  private readonly challenges = new Map<string, Challenge>();

  /** @param report is told what is wrong with which challenge */
  constructor(private readonly report: (difference: string) => void) {}

  /** What is held or owed of those that were paid. */
  get owed(): { readonly paid: number; readonly amount: bigint } {
    const paid = [...this.challenges.values()].filter((each) => each.paid > 0n);
    return { paid: paid.length, amount: paid.reduce((sum, each) => sum + leftOf(each) + each.held, 0n) };
  }

  /** @param stream of the challenge */
  judge(stream: string, reading: Reading): void {
    const known = this.challenges.get(stream);
    const wrong = (what: string) => this.report(`${stream} ${what}`);
    if (reading.kind !== 'offer') {
      if (known) judged(reading, known, wrong);
      else wrong('was never issued');
    } else if (known) wrong('was issued twice');
    else {
      assertRounded(reading, wrong);
      const none = { paid: 0n, held: 0n, charged: 0n, forfeited: 0n };
      this.challenges.set(stream, { offer: reading, ...none, open: new Set() });
    }
  }
}

type Wrong = (what: string) => void;

function judged(reading: Reading, challenge: Challenge, wrong: Wrong): void {
  const { offer, open } = challenge;
  switch (reading.kind) {
    case 'payment':
      if (reading.beyond ? !isShare(reading, challenge) : !isAsked(reading, offer))
        wrong('was paid otherwise than was asked for');
      if (!reading.beyond && challenge.paid > 0n) wrong('was paid twice');
      challenge.paid += reading.owed;
      break;
    case 'hold':
      if (challenge.paid === 0n) wrong('was claimed before it was paid');
      if (challenge.forfeited > 0n) wrong('was claimed after it was forfeited');
      if (open.size > 0) wrong('was claimed while a request that it pays for was running');
      open.add(reading.holdId);
      challenge.held += reading.amount;
      break;
    case 'end':
      open.delete(reading.holdId);
      challenge.held -= reading.held;
      challenge.charged += reading.charged;
      if (challenge.charged > challenge.paid) wrong('was charged more than was paid');
      if (reading.sale && reading.sale.priceList !== offer.priceList)
        wrong(`was charged by price list ${reading.sale.priceList}, and issued by ${offer.priceList}`);
      break;
    case 'forfeit':
      if (reading.amount !== leftOf(challenge)) wrong('was forfeited with another amount than was left of it');
      if (open.size > 0 || reading.at <= offer.usableUntil) wrong('was forfeited while it could be used');
      challenge.forfeited += reading.amount;
      break;
    default:
      break;
  }
}

function leftOf({ paid, held, charged, forfeited }: Challenge): bigint {
  return paid - held - charged - forfeited;
}

/** What is asked for is the price in whole satoshis, rounded up, and worth what the rate says. */
function assertRounded({ coin, units, rate, worth, price }: ChallengeOffer, wrong: Wrong): void {
  const perCoin = UNITS_PER_COIN[coin];
  if (perCoin === undefined) {
    wrong(`is paid in ${coin}`);
    return;
  }
  const { over, under } = decimal(rate);
  const worthOf = (quantity: bigint) => (quantity * over * PICO_USD) / (under * perCoin);
  if (worth !== worthOf(units)) wrong('asks for something else than its rate says');
  if (units % SATOSHI !== 0n || worth < price || worthOf(units - SATOSHI) >= price)
    wrong('asks for something else than its price, rounded up to a satoshi');
}

function isAsked({ units, worth, owed }: Extract<Reading, { kind: 'payment' }>, offer: ChallengeOffer): boolean {
  return units === offer.units && worth === offer.worth && owed === offer.price;
}

/** What comes beyond that is owed at the same rate. */
function isShare({ units, worth, owed }: Extract<Reading, { kind: 'payment' }>, { offer, paid }: Challenge): boolean {
  return paid > 0n && owed === worth && worth === (offer.worth * units) / offer.units;
}

function decimal(text: string) {
  const [whole = '', part = ''] = text.split('.');
  return reduceFraction(BigInt(whole + part), 10n ** BigInt(part.length));
}
