/** Compares the costs that providers report with those that the gateway calculates, and notifies the operator. */
import { type ChargeItem, hasDifferentCost, type PriceTerms } from '#domain';
import { ActionRequiredError, type Runtime } from '#kernel';
import type { ReportedBill } from './reported-bill.ts';

/** After this time, the operator is notified again of what continues. */
const REPEAT_INTERVAL_MS = 24 * 60 * 60 * 1_000;
/** Maximum number of observations in memory. One more removes the oldest: then the operator may be notified again. */
const MAX_OBSERVATIONS = 2_000;

const COST = 'cost';
const IMPLAUSIBLE_COST = 'implausible cost';
const HOUR_CACHE_WRITES = 'cache writes for an hour';
const UNCOUNTED_TOKENS = 'uncounted tokens';

export interface CostObservation {
  readonly model: string;
  /** Slug of the provider that invoices the calls. */
  readonly provider: string;
  /**
   * `cost`, `implausible cost`, `cache writes for an hour`, `uncounted tokens`, or a condition of the price such as
   * `service_tier priority`.
   */
  readonly subject: string;
  /** Number of calls since the start of this process. */
  readonly calls: number;
}

interface Entry {
  calls: number;
  /** By `runtime.now()`; undefined once the costs agree again. */
  notifiedAt: number | undefined;
}

type BilledCall = Pick<ChargeItem, 'of' | 'creditor' | 'usage' | 'cost' | 'reportedCost'>;

/**
 * What differed in this process, by model, provider and subject. Each is reported once, and once a day if it continues.
 */
export class CostMonitor {
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly runtime: Pick<Runtime, 'now' | 'reportError'>) {}

  /**
   * @param bill as reported for the call
   * @param request whether it requested caches that last an hour
   */
  record(
    call: BilledCall,
    bill: ReportedBill,
    { requestsHourCache = false }: { readonly requestsHourCache?: boolean } = {},
  ): void {
    const isDifferent = hasDifferentCost(call);
    if (isDifferent) this.count(call, COST);
    else if (isDifferent === false) this.recordAgreement(call);
    if (bill.isImplausible) this.count(call, IMPLAUSIBLE_COST);
    if (call.usage.cacheWriteHour && !requestsHourCache) this.count(call, HOUR_CACHE_WRITES);
    if (bill.uncountedTokens) this.count(call, UNCOUNTED_TOKENS);
    for (const subject of formatTerms(bill.terms)) this.count(call, subject);
  }

  /** Returns what differed since the start of this process, in the order of the first occurrence. */
  list(): readonly CostObservation[] {
    return [...this.entries].map(([key, { calls }]) => {
      const [provider, model, subject] = JSON.parse(key);
      return { model, provider, subject, calls };
    });
  }

  private count(call: BilledCall, subject: string): void {
    const key = toKey(call, subject);
    const entry = this.entries.get(key) ?? this.add(key);
    entry.calls += 1;
    const now = this.runtime.now();
    if (entry.notifiedAt !== undefined && now - entry.notifiedAt < REPEAT_INTERVAL_MS) return;
    entry.notifiedAt = now;
    this.runtime.reportError(formatProblem(call, subject), new ActionRequiredError(getAdvice(subject)));
  }

  private recordAgreement(call: BilledCall): void {
    const entry = this.entries.get(toKey(call, COST));
    if (entry) entry.notifiedAt = undefined;
  }

  private add(key: string): Entry {
    if (this.entries.size >= MAX_OBSERVATIONS) this.entries.delete(this.entries.keys().next().value as string);
    const entry: Entry = { calls: 0, notifiedAt: undefined };
    this.entries.set(key, entry);
    return entry;
  }
}

function toKey({ creditor, of }: BilledCall, subject: string): string {
  return JSON.stringify([creditor, of, subject]);
}

function formatTerms(terms: PriceTerms = {}): readonly string[] {
  return Object.entries(terms).map(([name, value]) => `${name} ${value}`);
}

function formatProblem({ of, creditor }: BilledCall, subject: string): string {
  if (subject === COST) return `${creditor} reports another cost for ${of} than the catalogue`;
  if (subject === HOUR_CACHE_WRITES) return `${creditor} cached input of ${of} for an hour, which was not requested`;
  if (subject === UNCOUNTED_TOKENS) return `${creditor} reports more tokens in all for ${of} than it lists`;
  if (subject === IMPLAUSIBLE_COST) return `${creditor} reports a cost for ${of} that is not plausible`;
  return `${creditor} served ${of} with ${subject}, which the catalogue has no price for`;
}

function getAdvice(subject: string): string {
  if (subject === HOUR_CACHE_WRITES)
    return 'correct the settings of the account at the provider; such writes are charged at their own price until then';
  if (subject === UNCOUNTED_TOKENS) return 'compare the invoice: these tokens are not charged to customers';
  if (subject === IMPLAUSIBLE_COST) return 'the cost is ignored';
  if (subject === COST) return 'correct the price in the catalogue; "npm run ledger -- costs" lists the amounts';
  return 'correct the settings of the account at the provider; calls are charged at the standard price until then';
}
