/** The provider costs of what no customer has paid for: those that are only possible, and those in the ledger. */
import type { Attempt, ChargeItem, DomainEvent } from '#domain';
import {
  type EventReader,
  formatUsd,
  money,
  NO_STREAM,
  type PicoUsd,
  START_POSITION,
  type StoredEvent,
  ZERO_USD,
} from '#kernel';
import { calculateCostBeyondLedger } from './costs.ts';
import { type EventPeriod, parseSinceFilter, parseUntilFilter } from './event-filter.ts';

/** The hold, and the event that states the cost. Not the complete event, because there can be many. */
interface AccrualSource extends Pick<StoredEvent, 'position' | 'recordedAt' | 'stream'> {
  readonly holdId: string;
}

interface Accrual extends AccrualSource {
  readonly reason: string;
  /** What was called, and the provider that invoices it. */
  readonly origin: string;
  readonly amount: PicoUsd;
}

const NOT_DELIVERED = 'not_delivered';

/**
 * Lists what providers may invoice although the ledger does not contain it: for holds that expired without a charge,
 * for failed calls, and for calls whose reported cost exceeds the one in the ledger. Then lists the costs in
 * the ledger of what no customer has paid for: items that the operator absorbs, and charges that came after their hold
 * had expired, or were reversed. Both lists are in the order of the log, and computed from all events up to `until`.
 * Memory grows with the lists, not with the log.
 * @throws StartError if a bound of the period is invalid
 */
export async function printAccruals(
  store: EventReader,
  { since, until }: EventPeriod,
  print: (line: string) => void,
): Promise<void> {
  const [isInPeriod, isIncluded] = [parseSinceFilter(since), parseUntilFilter(until)];
  const accruals = new Accruals();
  for await (const { events } of store.readAll(START_POSITION))
    for (const event of events) if (isIncluded(event)) accruals.book(event as StoredEvent<DomainEvent>);
  for (const stream of accruals.streamsWithReversals)
    for await (const events of store.read(stream, NO_STREAM))
      for (const event of events) accruals.bookReversed(event as StoredEvent<DomainEvent>);
  const select = (accruals: readonly Accrual[]) =>
    accruals.filter((accrual) => accrual.amount !== ZERO_USD && isInPeriod(accrual)).sort(byPosition);
  const [possible, booked] = [select(accruals.possible), select(accruals.booked)];
  print(`${possible.length} costs may be invoiced that the ledger does not contain: ${formatTotal(possible)} at most`);
  for (const accrual of possible) print(`${formatAccrual(accrual)} at most`);
  print(`${booked.length} costs in the ledger were paid by no customer: ${formatTotal(booked)}`);
  for (const accrual of booked) print(formatAccrual(accrual));
}

class Accruals {
  readonly booked: Accrual[] = [];
  private readonly attempts: Accrual[] = [];
  /** What providers reported beyond the cost in the ledger. */
  private readonly excesses: Accrual[] = [];
  /** Holds without a charge, by hold id. A charge that arrives later replaces such an entry. */
  private readonly expiredHolds = new Map<string, Accrual>();
  /** Reversals of charges, by hold id. */
  private readonly reversals = new Map<string, AccrualSource>();

  get possible(): readonly Accrual[] {
    return [...this.expiredHolds.values(), ...this.attempts, ...this.excesses];
  }

  /** The streams in which charges were reversed. Their events must be passed to `bookReversed`. */
  get streamsWithReversals(): ReadonlySet<string> {
    return new Set(this.reversals.values().map(({ stream }) => stream));
  }

  book(event: StoredEvent<DomainEvent>): void {
    switch (event.type) {
      case 'HoldExpired': {
        const { held, query } = event.data;
        // No provider is called for a video whose hold ends before it is transferred to the job.
        const amount = query.type === 'video_generation' ? ZERO_USD : money.parseJsonAmount(held);
        const source = toSource(event, event.data);
        this.expiredHolds.set(source.holdId, { ...source, reason: 'gateway_killed', origin: query.model, amount });
        break;
      }
      case 'HoldReleased':
        this.bookAttempts(toSource(event, event.data), event.data.attempts);
        break;
      case 'HoldSettled': {
        const { items, attempts } = event.data.charge;
        const source = toSource(event, event.data);
        this.bookAttempts(source, attempts);
        this.bookExcesses(source, items);
        this.bookItems(source, items.filter(isAbsorbed));
        break;
      }
      case 'ChargeAbsorbed': {
        const { items, attempts } = event.data.charge;
        const source = toSource(event, event.data);
        const hasExpired = this.expiredHolds.delete(source.holdId);
        // Otherwise the event of the release, which precedes this one, has the same attempts.
        if (hasExpired) this.bookAttempts(source, attempts);
        this.bookExcesses(source, items);
        this.bookItems(source, items, hasExpired ? 'expired' : NOT_DELIVERED);
        break;
      }
      case 'ChargeReversed':
        this.reversals.set(event.data.holdId, toSource(event, event.data));
        break;
      default:
    }
  }

  /** Adds what the customer had paid for before the reversal. The event of the reversal does not state the cost. */
  bookReversed(event: StoredEvent<DomainEvent>): void {
    if (event.type !== 'HoldSettled') return;
    const reversal = this.reversals.get(event.data.holdId);
    const items = event.data.charge.items.filter((item) => !isAbsorbed(item));
    if (reversal) this.bookItems(reversal, items, 'reversed');
  }

  private bookAttempts(source: AccrualSource, attempts: readonly Attempt[]): void {
    for (const { openCost, outcome, model, ...attempt } of attempts) {
      if (openCost === undefined) continue;
      const origin = formatOrigin({ ...attempt, of: model });
      this.attempts.push({
        ...source,
        reason: `failed (${outcome})`,
        origin,
        amount: money.parseJsonAmount(openCost),
      });
    }
  }

  private bookExcesses(source: AccrualSource, items: readonly ChargeItem[]): void {
    for (const item of items) {
      const amount = calculateCostBeyondLedger(item);
      if (amount === ZERO_USD) continue;
      this.excesses.push({ ...source, reason: 'reported', origin: formatOrigin(item), amount });
    }
  }

  /** @param reasonOfPaid the reason for items that the customer would have paid */
  private bookItems(source: AccrualSource, items: readonly ChargeItem[], reasonOfPaid = NOT_DELIVERED): void {
    for (const item of items) {
      const { absorbed, cost } = item;
      const isNamed = absorbed !== undefined && absorbed !== NOT_DELIVERED;
      const reason = isNamed ? `${NOT_DELIVERED} (${absorbed})` : (absorbed ?? reasonOfPaid);
      this.booked.push({ ...source, reason, origin: formatOrigin(item), amount: money.parseJsonAmount(cost) });
    }
  }
}

function isAbsorbed({ absorbed }: ChargeItem): boolean {
  return absorbed !== undefined;
}

function toSource(
  { position, recordedAt, stream }: StoredEvent,
  { holdId }: { readonly holdId: string },
): AccrualSource {
  return { position, recordedAt, stream, holdId };
}

function formatOrigin({ of, creditor, vendorId }: Pick<ChargeItem, 'of' | 'creditor' | 'vendorId'>): string {
  return `${of ?? 'unknown model'} at ${creditor}${vendorId === undefined ? '' : ` as ${vendorId}`}`;
}

function formatAccrual({ recordedAt, holdId, reason, origin, stream, amount }: Accrual): string {
  return `${recordedAt}  ${holdId}  ${reason}, ${origin}, ${stream}: ${formatUsd(amount)} USD`;
}

function formatTotal(accruals: readonly Accrual[]): string {
  return `${formatUsd(money.sum(accruals.map(({ amount }) => amount)))} USD`;
}

function byPosition(a: Accrual, b: Accrual): number {
  return a.position < b.position ? -1 : Number(a.position > b.position);
}
