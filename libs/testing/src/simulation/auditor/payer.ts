/** Rules for the holds and the balance of one payer: an account or a challenge. */
import { type AuditedEvent, type ChargeData, parseAmount, sumAmounts } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';
import type { Balance } from './ledger.ts';

/** Amounts in pico-USD. */
export interface AuditedHold {
  readonly amount: bigint;
  readonly keyId: string | null;
  /** The process that serves the request, or the stream of the job that owns the hold. */
  readonly owner: string | undefined;
  readonly expiresAt: string;
  readonly heldAt: string;
  readonly query: unknown;
  /** Whether a job owns the hold. */
  readonly hasJob: boolean;
}

/** How a hold ended. Amounts in pico-USD; 0 without a charge. */
export interface AuditedHoldEnd {
  readonly resolution: 'settled' | 'released' | 'expired';
  readonly charged: bigint;
  readonly price: bigint;
  readonly cost: bigint;
  readonly isReversed: boolean;
  /** The charge that the operator absorbed after the end; undefined if there is none. */
  readonly absorbed: ChargeData | undefined;
}

type HoldEventData = AuditedEvent['data'];

/** Returns the fields of a charge that its reversal repeats. */
function toChargeIdentity({ keyId, heldAt, countedAt, countedIn, query, charged }: HoldEventData): string {
  return JSON.stringify([keyId, heldAt, countedAt, countedIn, query, charged]);
}

export class AuditedPayer {
  readonly holds = new Map<string, AuditedHold>();
  readonly ends = new Map<string, AuditedHoldEnd>();
  /** What the payer got without holds: credits, reversals, adjustments, payments, forfeits. */
  income = 0n;
  /** Charges minus reversed charges. */
  charged = 0n;
  private readonly charges = new Map<string, string>();

  constructor(private readonly recorder: FindingRecorder) {}

  get held(): bigint {
    return sumAmounts([...this.holds.values()].map(({ amount }) => amount));
  }

  get available(): bigint {
    return this.income - this.charged - this.held;
  }

  /** Applies an event of a hold. @returns false for any other event */
  applyHoldEvent(event: AuditedEvent): boolean {
    switch (event.type) {
      case 'FundsHeld':
        this.hold(event.data);
        return true;
      case 'HoldExtended':
        this.extend(event.data);
        return true;
      case 'HoldKept':
        this.transfer(event.data);
        return true;
      case 'HoldSettled':
      case 'HoldReleased':
      case 'HoldExpired':
        this.end(event);
        return true;
      case 'ChargeAbsorbed':
        this.absorb(event.data);
        return true;
      case 'ChargeReversed':
        this.reverse(event.data);
        return true;
      default:
        return false;
    }
  }

  /**
   * Compares the balance with the ledger, and with the balance before the event. Only a reversal of a credit may lower
   * the available money below zero.
   */
  checkBalance(event: AuditedEvent, before: bigint, booked: Balance): void {
    const { available, held, recorder } = this;
    recorder.checkSame(booked.available, available, 'money is neither created nor lost', 'the booked available amount');
    recorder.checkSame(booked.held, held, 'the held amount is the sum of the open holds', 'the booked held amount');
    const isAllowed = available >= 0n || available >= before || event.type === 'CreditReversed';
    const describe = () => `${before} available before, ${available} after`;
    recorder.check(isAllowed, 'only a reversed credit lowers the available amount below zero', describe);
  }

  private hold({ holdId, keyId, amount, owner, expiresAt, query, at }: HoldEventData): void {
    const isNew = !this.holds.has(holdId) && !this.ends.has(holdId);
    this.recorder.check(isNew, 'a hold is placed once', () => holdId);
    this.recorder.check(parseAmount(amount) >= 0n, 'a hold has no negative amount', () => `${holdId}: ${amount}`);
    const hold = { amount: parseAmount(amount), keyId, owner, expiresAt, heldAt: at, query, hasJob: false };
    this.holds.set(holdId, hold);
  }

  private extend({ holdId, keyId, amount, by, at }: HoldEventData): void {
    const hold = this.getOpenHold(holdId, 'a hold that has ended is not extended');
    if (!hold) return;
    const { recorder } = this;
    recorder.checkSame(keyId, hold.keyId, 'a hold has one key', `the key of ${holdId}`);
    const isIncrease = parseAmount(by) > 0n && parseAmount(amount) === hold.amount + parseAmount(by);
    const describe = () => `${holdId}: ${hold.amount} by ${by} to ${amount}`;
    recorder.check(isIncrease, 'an extension adds its increase to the hold', describe);
    recorder.check(
      at < hold.expiresAt,
      'a hold that has expired is not extended',
      () => `${holdId} at ${at}, expired at ${hold.expiresAt}`,
    );
    this.holds.set(holdId, { ...hold, amount: parseAmount(amount) });
  }

  private transfer({ holdId, owner, expiresAt, at }: HoldEventData): void {
    const hold = this.getOpenHold(holdId, 'a hold that has ended is not transferred to a job');
    if (!hold) return;
    const { recorder } = this;
    recorder.check(!hold.hasJob, 'a hold is transferred to one job', () => `${holdId} from ${hold.owner} to ${owner}`);
    recorder.check(
      at < hold.expiresAt && expiresAt >= hold.expiresAt,
      'a transferred hold had not expired',
      () => `${holdId} at ${at}, expired at ${hold.expiresAt}`,
    );
    this.holds.set(holdId, { ...hold, owner, expiresAt, hasJob: true });
  }

  private end({ type, data }: AuditedEvent): void {
    const { recorder } = this;
    const { holdId } = data;
    const hold = this.getOpenHold(holdId, 'a hold ends once');
    if (hold) {
      recorder.checkSame(parseAmount(data.held), hold.amount, 'a hold ends with its open amount', `held of ${holdId}`);
      recorder.checkSame(data.keyId, hold.keyId, 'a hold has one key', `the key of ${holdId}`);
      recorder.checkSame(data.heldAt, hold.heldAt, 'a hold ends with the time of its start', `heldAt of ${holdId}`);
    }
    const resolution = type === 'HoldSettled' ? 'settled' : type === 'HoldReleased' ? 'released' : 'expired';
    if (resolution === 'expired') recorder.check(!hold?.hasJob, 'the hold of a job does not expire', () => holdId);
    if (resolution !== 'settled') {
      const unchanged = JSON.stringify(data.query) === JSON.stringify(hold?.query ?? data.query);
      recorder.check(unchanged, 'an uncharged hold ends with its own query', () => JSON.stringify(data.query));
    }
    this.holds.delete(holdId);
    const uncharged = { charged: 0n, price: 0n, cost: 0n };
    const amounts = resolution === 'settled' ? this.settle(data, hold?.amount ?? parseAmount(data.held)) : uncharged;
    this.ends.set(holdId, { resolution, ...amounts, isReversed: false, absorbed: undefined });
  }

  private settle(data: HoldEventData, held: bigint) {
    const { holdId, charge } = data;
    checkCharge(charge, this.recorder);
    const [charged, price, cost] = [data.charged, charge.price, charge.cost].map(parseAmount) as [
      bigint,
      bigint,
      bigint,
    ];
    const expected = price < held ? price : held;
    this.recorder.checkSame(
      charged,
      expected,
      'a charge is the price up to the held amount',
      `the charge of ${holdId}`,
    );
    this.charged += charged;
    this.charges.set(holdId, toChargeIdentity(data));
    return { charged, price, cost };
  }

  private absorb({ holdId, charge }: HoldEventData): void {
    checkCharge(charge, this.recorder);
    const end = this.ends.get(holdId);
    const describe = () => `${holdId}, ${this.describeState(holdId)}`;
    const isUncharged = end !== undefined && end.resolution !== 'settled';
    this.recorder.check(isUncharged, 'only the charge of a released or expired hold is absorbed', describe);
    this.recorder.check(!end?.absorbed, 'a charge is absorbed once', describe);
    if (end) this.ends.set(holdId, { ...end, absorbed: charge });
  }

  private reverse(data: HoldEventData): void {
    const { holdId, charged } = data;
    const end = this.ends.get(holdId);
    const describe = () => `${holdId}, ${this.describeState(holdId)}`;
    this.recorder.check(end?.resolution === 'settled', 'only the charge of a settled hold is reversed', describe);
    this.recorder.check(!end?.isReversed, 'a charge is reversed once', describe);
    const isSame = this.charges.get(holdId) === toChargeIdentity(data);
    this.recorder.check(isSame, 'a reversed charge equals the charge', () => `${holdId}: ${charged}`);
    this.charged -= parseAmount(charged);
    if (end) this.ends.set(holdId, { ...end, isReversed: true });
  }

  private getOpenHold(holdId: string, rule: Parameters<FindingRecorder['check']>[1]): AuditedHold | undefined {
    const hold = this.holds.get(holdId);
    this.recorder.check(hold !== undefined, rule, () => `${holdId}, ${this.describeState(holdId)}`);
    return hold;
  }

  private describeState(holdId: string): string {
    if (this.holds.has(holdId)) return 'which is open';
    return this.ends.has(holdId) ? `which was ${this.ends.get(holdId)?.resolution}` : 'which was never placed';
  }
}

/** Checks the sums of a charge. */
export function checkCharge({ items, price, cost }: ChargeData, recorder: FindingRecorder): void {
  const totals = { price: parseAmount(price), cost: parseAmount(cost) };
  for (const name of ['price', 'cost'] as const) {
    const amounts = items.map((item) => parseAmount(item[name]));
    recorder.checkSame(totals[name], sumAmounts(amounts), 'a charge is the sum of its items', name);
    const isPossible = amounts.every((amount) => amount >= 0n);
    recorder.check(isPossible, 'no item of a charge is negative', () => `${name}: ${amounts.join(', ')}`);
  }
}
