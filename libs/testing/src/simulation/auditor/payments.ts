/** Rules for payments: their claims, top-ups, credits and reversals, and the invoices that accounts may create. */
import { type AuditedEvent, getOrCreate, parseAmount, sumAmounts, toMs, toStreamId } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';
import { calculateValue } from './ledger.ts';

/** A payment to an address has the rate of its invoice if it is final so long after the expiry. */
const MAX_CONFIRMATION_MS = 2 * 3_600_000;
/** A payment can be refunded and disputed: then it is reversed twice. */
const MAX_REVERSALS = 2n;
const EXCESS = 'excess:';

type EventData = AuditedEvent['data'];

/** Amounts in pico-USD, units of a coin. Negative for reversals. */
interface Sums {
  units: bigint;
  amount: bigint;
  bonus: bigint;
  excess: bigint;
}

/** A received payment. */
interface Payment {
  readonly key: string;
  readonly topup: string;
  readonly accountId: string;
  readonly method: string;
  readonly paid: Readonly<Sums>;
  readonly reversed: Sums;
  /** What a person has credited of the excess, in pico-USD. */
  creditedExcess: bigint;
  /** What the account was credited for the excess, in pico-USD. */
  bookedExcess: bigint;
  /** Sum of the reversals of the account. */
  bookedReversals: bigint;
  isCredited: boolean;
  isMarked: boolean;
  /** By reversal id of the account; whether the account has it. */
  readonly reversals: Map<string, { readonly amount: bigint; readonly bonus: bigint; isBooked: boolean }>;
}

interface Topup {
  readonly invoice: EventData;
  /** Keys of the payments that were seen and are neither lost nor received. */
  readonly pending: Set<string>;
  readonly payments: string[];
}

interface Claim {
  readonly owner: string;
  /** Whether a person has closed the contest, by claimant. */
  readonly contests: Map<string, boolean>;
}

interface AllowedInvoices {
  /** Expiry by top-up. */
  readonly open: Map<string, string>;
  readonly allowed: Set<string>;
  /** The latest time of an event: clocks of gateways differ. */
  now: string;
}

/** Amounts in pico-USD. */
export interface AuditedTopup {
  readonly accountId: string;
  readonly received: bigint;
  readonly credited: bigint;
  /** Whether all received payments are credited and marked as such. */
  readonly isCredited: boolean;
}

export interface PaymentOptions {
  /** Accepts credits without a received payment. */
  readonly allowsUnpaidCredits?: boolean | undefined;
  /** Maximum number of unexpired invoices of an account. */
  readonly maxOpenInvoices?: number | undefined;
}

function toKey({ payment }: EventData): string {
  return `${payment.backend}/${payment.id}`;
}

export class Payments {
  readonly topups = new Map<string, Topup>();
  private readonly payments = new Map<string, Payment>();
  private readonly claims = new Map<string, Claim>();
  private readonly invoices = new Map<string, AllowedInvoices>();
  private readonly creditIds = new Set<string>();
  private readonly feeIds = new Set<string>();
  /** What payment backends hold by payment method, in pico-USD. */
  private readonly backendAmounts = new Map<string, bigint>();

  constructor(
    private readonly recorder: FindingRecorder,
    private readonly options: PaymentOptions,
  ) {}

  apply(event: AuditedEvent): void {
    const { data, stream } = event;
    switch (event.type) {
      case 'PaymentClaimed':
      case 'PaymentContested':
      case 'ContestClosed':
        this.claim(event);
        return;
      case 'InvoiceAllowed':
        this.allowInvoice(event);
        return;
      case 'InvoiceDropped': {
        const isOpen = this.getInvoices(stream).open.delete(data.topupId);
        this.recorder.check(isOpen, 'only an allowed invoice is dropped', () => data.topupId);
        return;
      }
      case 'InvoiceIssued':
        this.issue(event);
        return;
      case 'PaymentSeen':
      case 'PaymentLost':
        this.see(event);
        return;
      case 'PaymentReceived':
        this.receive(event);
        return;
      case 'TopupCredited':
        this.mark(event);
        return;
      case 'ExcessCredited':
        this.creditExcess(event);
        return;
      case 'PaymentReversed':
        this.reverse(event);
        return;
      case 'PaymentFeeCharged': {
        const id = `${toKey(data)} ${data.feeId}`;
        this.recorder.check(!this.feeIds.has(id), 'a fee is charged once', () => id);
        this.feeIds.add(id);
        this.addReceived(data.method, -parseAmount(data.amount));
        return;
      }
      case 'ChallengePaid':
      case 'ChallengeOverpaid':
        this.addReceived(data.method, parseAmount(data.amount));
        return;
      case 'CreditAdded':
        this.credit(event);
        return;
      case 'CreditReversed':
        this.reverseCredit(event);
        return;
      default:
    }
  }

  /** Returns the stream of the top-up or challenge to which a payment belongs. @param key such as `lnd/5b0e…` */
  getOwner(key: string): string | undefined {
    return this.claims.get(key)?.owner;
  }

  getTopup(id: string): AuditedTopup | undefined {
    const topup = this.topups.get(`topup-${id}`);
    if (!topup) return undefined;
    const payments = topup.payments.flatMap((key) => this.payments.get(key) ?? []);
    const received = sumAmounts(payments.map(({ paid }) => paid.amount + paid.bonus));
    const credited = sumAmounts(payments.map(({ isCredited, paid }) => (isCredited ? paid.amount + paid.bonus : 0n)));
    const isCredited = payments.length > 0 && payments.every((payment) => payment.isCredited && payment.isMarked);
    return { accountId: topup.invoice.accountId, received, credited, isCredited };
  }

  /** @param ledger balances of the ledger in pico-USD */
  /** @param lostPayments which the network dropped after they had counted as final */
  finish(
    ledger: ReadonlyMap<string, bigint>,
    isChallengePaid: (stream: string) => boolean,
    lostPayments: ReadonlySet<string> = new Set(),
  ): void {
    const { recorder } = this;
    for (const payment of this.payments.values()) {
      const describe = () => `payment ${payment.key} of ${payment.topup}`;
      recorder.check(payment.isCredited, 'a received payment is credited', describe);
      recorder.check(payment.isMarked, 'a credited payment is marked as credited', describe);
      const isExcessBooked = payment.bookedExcess === payment.creditedExcess;
      recorder.check(isExcessBooked, 'a credited excess is credited to the account', describe);
      const areBooked = [...payment.reversals.values()].every(({ isBooked }) => isBooked);
      recorder.check(areBooked, 'a reversed payment is reversed in the account', describe);
    }
    for (const [key, { owner }] of this.claims) {
      const isUsed =
        lostPayments.has(key) || isChallengePaid(owner) || (this.topups.get(owner)?.payments.length ?? 0) > 0;
      recorder.check(isUsed, 'the owner of a claimed payment receives it', () => `payment ${key} of ${owner}`);
    }
    if (this.options.allowsUnpaidCredits) return;
    const methods = new Set([...this.backendAmounts.keys(), ...[...ledger.keys()].flatMap(toClearingMethod)]);
    for (const method of methods) {
      const rule = 'the clearing account is what payment backends hold';
      recorder.checkSame(ledger.get(`clearing:${method}`) ?? 0n, this.backendAmounts.get(method) ?? 0n, rule, method);
    }
  }

  private claim({ type, stream, data }: AuditedEvent): void {
    const key = toStreamId(stream);
    const claim = this.claims.get(key);
    const { claimant } = data;
    const describe = () => `${claimant} and ${claim?.owner}`;
    if (type === 'PaymentClaimed') {
      this.recorder.checkSame(toKey(data), key, 'a claim is in the stream of its payment', 'the payment');
      this.recorder.check(!claim, 'a payment is claimed once', describe);
      this.claims.set(key, claim ?? { owner: claimant, contests: new Map() });
      return;
    }
    const isContest = type === 'PaymentContested';
    const isNew = claim !== undefined && claim.owner !== claimant && !claim.contests.has(claimant);
    if (isContest)
      this.recorder.check(isNew && data.owner === claim?.owner, 'a claimed payment is contested by another', describe);
    else this.recorder.check(claim?.contests.get(claimant) === false, 'only an open contest is closed', () => claimant);
    claim?.contests.set(claimant, !isContest);
  }

  private getInvoices(stream: string): AllowedInvoices {
    return getOrCreate(this.invoices, toStreamId(stream), () => ({ open: new Map(), allowed: new Set(), now: '' }));
  }

  private allowInvoice({ stream, data: { accountId, topupId, expiresAt, at } }: AuditedEvent): void {
    const { maxOpenInvoices } = this.options;
    const invoices = this.getInvoices(stream);
    if (at > invoices.now) invoices.now = at;
    for (const [id, end] of invoices.open) if (end <= invoices.now) invoices.open.delete(id);
    this.recorder.checkSame(
      accountId,
      toStreamId(stream),
      'an invoice is allowed in the stream of its account',
      topupId,
    );
    this.recorder.check(!invoices.open.has(topupId), 'an open invoice is allowed once', () => topupId);
    invoices.open.set(topupId, expiresAt);
    invoices.allowed.add(topupId);
    const isWithin = maxOpenInvoices === undefined || invoices.open.size <= maxOpenInvoices;
    this.recorder.check(isWithin, 'an account has at most the maximum of open invoices', () =>
      [...invoices.open.keys()].join(', '),
    );
  }

  private issue({ stream, data }: AuditedEvent): void {
    const { recorder } = this;
    recorder.check(!this.topups.has(stream), 'a top-up has one invoice', () => stream);
    const isAllowed = this.invoices.get(data.accountId)?.allowed.has(toStreamId(stream)) === true;
    recorder.check(isAllowed, 'an invoice was allowed before it was issued', () => `account ${data.accountId}`);
    if (!this.topups.has(stream)) this.topups.set(stream, { invoice: data, pending: new Set(), payments: [] });
  }

  private see({ type, stream, data }: AuditedEvent): void {
    const key = toKey(data);
    const topup = this.getTopupOfEvent(stream);
    if (!topup) return;
    if (type === 'PaymentSeen') {
      // Another top-up may see it.
      const isReceived = this.payments.get(key)?.topup === stream;
      this.recorder.check(!isReceived, 'a received payment is not seen again', () => key);
      topup.pending.add(key);
      return;
    }
    this.recorder.check(topup.pending.delete(key), 'only a seen payment is lost', () => key);
    const owner = this.getOwner(key);
    const isOther = owner !== undefined && owner !== stream;
    if (data.isContested)
      this.recorder.check(isOther, 'a payment of another owner is lost', () => `${key} of ${owner}`);
  }

  private receive({ stream, data }: AuditedEvent): void {
    const { recorder } = this;
    const key = toKey(data);
    const topup = this.getTopupOfEvent(stream);
    recorder.check(!this.payments.has(key), 'a payment is received once', () => `${key} by ${stream}`);
    recorder.checkSame(this.getOwner(key), stream, 'a payment is claimed before it is received', `owner of ${key}`);
    const paid = {
      units: parseAmount(data.units),
      amount: parseAmount(data.amount),
      bonus: parseAmount(data.bonus),
      excess: parseAmount(data.excess ?? '0'),
    };
    const { accountId, method } = data;
    const progress = { creditedExcess: 0n, bookedExcess: 0n, bookedReversals: 0n, isCredited: false, isMarked: false };
    const reversed = { units: 0n, amount: 0n, bonus: 0n, excess: 0n };
    const payment = { key, topup: stream, accountId, method, paid, reversed, ...progress, reversals: new Map() };
    this.payments.set(key, payment);
    this.addReceived(method, calculateValue(data));
    if (!topup) return;
    topup.payments.push(key);
    topup.pending.delete(key);
    const isSame = accountId === topup.invoice.accountId && method === topup.invoice.method;
    recorder.check(isSame, 'a payment has the account and method of its invoice', () => `${accountId}, ${method}`);
    checkParts(data, paid, recorder);
    this.checkValue(data, paid, topup.invoice);
  }

  /** A payment in time is worth the rate of its invoice or less, and its bonus is that of the invoice or less. */
  private checkValue(data: EventData, { units, amount, bonus, excess }: Sums, invoice: EventData): void {
    const isAddress = invoice.destination.kind === 'address';
    const isDelayed = isAddress && toMs(data.at) > toMs(invoice.expiresAt) + MAX_CONFIRMATION_MS;
    const isInTime = data.receivedAt <= invoice.expiresAt && !isDelayed;
    const value = (parseAmount(invoice.usd) * units) / parseAmount(invoice.units);
    const describe = () => `${amount} with the bonus ${bonus} and the excess ${excess} for ${units} units`;
    const isWorth = !isInTime || amount + excess <= value;
    this.recorder.check(isWorth, 'a payment in time is worth at most the rate of its invoice', describe);
    const isBonusRight = bonus * 100n <= amount * BigInt(invoice.bonusPercent) && bonus >= 0n && amount >= 0n;
    this.recorder.check(isBonusRight, 'a bonus is at most that of the invoice', describe);
  }

  private mark({ stream, data }: AuditedEvent): void {
    const payment = this.getReceived(stream, data);
    if (!payment) return;
    this.recorder.check(payment.isCredited, 'a payment is credited before it is marked', () => payment.key);
    this.recorder.check(!payment.isMarked, 'a payment is marked once', () => payment.key);
    payment.isMarked = true;
  }

  private creditExcess({ stream, data }: AuditedEvent): void {
    const payment = this.getReceived(stream, data);
    if (!payment) return;
    const { paid, reversed, creditedExcess } = payment;
    const open = paid.excess + reversed.excess - creditedExcess;
    const amount = parseAmount(data.amount);
    const describe = () => `${payment.key}: ${amount} of ${open}`;
    this.recorder.check(amount > 0n && amount <= open, 'only an open excess is credited', describe);
    payment.creditedExcess += amount;
  }

  /** All of a payment can be reversed twice; what was reversed can be restored. */
  private reverse({ stream, data }: AuditedEvent): void {
    const payment = this.getReceived(stream, data);
    if (!payment) return;
    const { recorder } = this;
    const { key, paid, reversed, reversals, creditedExcess } = payment;
    const id = `${data.payment.backend}/${data.reversalId}`;
    const [amount, bonus] = [parseAmount(data.amount), parseAmount(data.bonus)];
    recorder.check(!reversals.has(id), 'a reversal is recorded once', () => `${id} of ${key}`);
    reversals.set(id, { amount, bonus, isBooked: false });
    reversed.units += parseAmount(data.units);
    reversed.amount += amount;
    reversed.bonus += bonus;
    reversed.excess += parseAmount(data.excess ?? '0');
    this.addReceived(payment.method, calculateValue(data));
    const remaining = paid.units + reversed.units;
    const describe = () => `${key}: ${remaining} of ${paid.units} units, ${describeSums(reversed)}`;
    const totals = { amount: paid.amount + creditedExcess, bonus: paid.bonus, excess: paid.excess - creditedExcess };
    const names = ['amount', 'bonus', 'excess'] as const;
    const areWithin =
      remaining >= -paid.units &&
      remaining <= paid.units &&
      names.every((name) => reversed[name] <= 0n && reversed[name] >= -MAX_REVERSALS * (paid[name] + creditedExcess));
    recorder.check(areWithin, 'at most twice a payment is reversed, and no more is restored', describe);
    const isNone = remaining !== paid.units || names.every((name) => reversed[name] === 0n);
    const isComplete = remaining !== 0n || names.every((name) => reversed[name] === -totals[name]);
    recorder.check(isNone && isComplete, 'the reversals of all units are the amounts of the payment', describe);
  }

  private credit({ stream, data }: AuditedEvent): void {
    const { recorder } = this;
    const { creditId } = data;
    const isExcess = creditId.startsWith(EXCESS);
    const payment = this.payments.get(isExcess ? creditId.slice(EXCESS.length) : creditId);
    // Ids of credits without a payment are unique only in their account.
    const id = payment ? creditId : `${stream} ${creditId}`;
    recorder.check(!this.creditIds.has(id), 'a credit is added once', () => creditId);
    this.creditIds.add(id);
    if (this.options.allowsUnpaidCredits && !payment) return;
    recorder.check(payment !== undefined, 'a credit has a received payment', () => creditId);
    if (!payment) return;
    const [amount, bonus] = [parseAmount(data.amount), parseAmount(data.bonus)];
    const isSameAmount = isExcess
      ? amount === payment.creditedExcess && bonus === 0n
      : amount === payment.paid.amount && bonus === payment.paid.bonus;
    const isSame = stream === `account-${payment.accountId}` && data.method === payment.method && isSameAmount;
    recorder.check(isSame, 'a credit equals its payment', () => `${creditId}: ${amount} and ${bonus}`);
    if (isExcess) payment.bookedExcess += amount;
    else payment.isCredited = true;
  }

  private reverseCredit({ stream, data }: AuditedEvent): void {
    const payment = this.payments.get(data.creditId);
    if (this.options.allowsUnpaidCredits && !payment) return;
    const reversal = payment?.reversals.get(data.reversalId);
    const [amount, bonus] = [parseAmount(data.amount), parseAmount(data.bonus)];
    const isSame =
      reversal?.amount === amount && reversal.bonus === bonus && stream === `account-${payment?.accountId}`;
    const describe = () => `${data.reversalId} of ${data.creditId}: ${amount} and ${bonus}`;
    this.recorder.check(isSame, 'a reversed credit equals its reversed payment', describe);
    if (!payment || !reversal) return;
    reversal.isBooked = true;
    payment.bookedReversals += amount + bonus;
    const { paid, bookedReversals, creditedExcess } = payment;
    const max = MAX_REVERSALS * (paid.amount + paid.bonus + creditedExcess);
    const isWithin = bookedReversals <= 0n && bookedReversals >= -max;
    this.recorder.check(isWithin, 'at most twice a credit is reversed, and no more is restored', describe);
  }

  private getTopupOfEvent(stream: string): Topup | undefined {
    const topup = this.topups.get(stream);
    this.recorder.check(topup !== undefined, 'a top-up begins with its invoice', () => stream);
    return topup;
  }

  private getReceived(stream: string, data: EventData): Payment | undefined {
    const payment = this.payments.get(toKey(data));
    const isReceived = payment?.topup === stream;
    this.recorder.check(isReceived, 'only a received payment is credited, marked or reversed', () => toKey(data));
    return isReceived ? payment : undefined;
  }

  private addReceived(method: string, amount: bigint): void {
    this.backendAmounts.set(method, (this.backendAmounts.get(method) ?? 0n) + amount);
  }
}

function toClearingMethod(account: string): readonly string[] {
  return account.startsWith('clearing:') ? [account.slice('clearing:'.length)] : [];
}

function describeSums({ amount, bonus, excess }: Sums): string {
  return `amount ${amount}, bonus ${bonus}, excess ${excess}`;
}

function checkParts({ parts }: EventData, { units, amount, bonus, excess }: Sums, recorder: FindingRecorder): void {
  if (!parts) return;
  const sums = { units: 0n, amount: 0n, bonus: 0n, excess: 0n };
  for (const part of parts) {
    sums.units += parseAmount(part.units);
    sums.bonus += parseAmount(part.bonus);
    sums[part.isExcess ? 'excess' : 'amount'] += parseAmount(part.amount);
  }
  const isSame = sums.units === units && sums.amount === amount && sums.bonus === bonus && sums.excess === excess;
  recorder.check(isSame, 'the parts of a payment add up to it', () => `${sums.units} units, ${describeSums(sums)}`);
}
