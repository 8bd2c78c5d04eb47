/**
 * What must hold after a simulation, apart from the rules that the auditor checks: what clients were sent, what the
 * provider bills, and the states that processes have.
 */
import {
  type AccountEvent,
  type AccountState,
  type ApiKeyState,
  accountCodec,
  accountDecider,
  EVENT_SCHEMA,
} from '#domain';
import { type EventBatch, fold, NO_STREAM, Rejection, START_POSITION, type StoredEvent, withUpcasting } from '#kernel';
import { UpstreamError } from '../../../application/src/errors.ts';
import { holds } from '../../../projections/src/holds.ts';
import { keys } from '../../../projections/src/keys.ts';
import type { ReadModelRow } from '../../../projections/src/projection.ts';
import { Auditor } from './auditor.ts';
import { NO_STORE_FAULTS } from './faulty-event-store.ts';
import { MemoryReadModel } from './memory-read-model.ts';
import { TOKEN_PRICE } from './plan.ts';
import { getFirstPart } from './simulated-gateway.ts';
import { AUTO_TOPUP_LIMITS, MAX_OPEN_INVOICES } from './simulated-workflows.ts';
import type { SentRequest, SimulatedWorld } from './simulated-world.ts';

/** A rule that does not hold. */
export interface RuleViolation {
  /** A short stable sentence. */
  readonly rule: string;
  readonly detail: string;
}

/** Failures after which the client owes what was served by then. */
const OWED_AFTER: ReadonlySet<string> = new Set(['client_disconnected', 'hold_used_up']);
/** How long the holds of a process that is gone may stay open. */
const MAX_SWEEP_MS = 60_000;
/** A process that sent no heartbeat for less has not lost its holds: it must seem dead in all checks for so long. */
const MIN_DEAD_MS = 10_000;
/** How long a process takes to stop once nothing fails any more. */
const MAX_STOP_MS = 120_000;
const STATE_READ_MS = 30_000;
const ACCOUNT_PREFIX = 'account-';

/** What the ledger has for a request. Amounts in pico-USD. */
interface RecordedRequest {
  charged: bigint;
  cost: bigint;
}

/** The money of an account from a time on, in milliseconds since the start. */
interface AccountMoney {
  readonly atMs: number;
  readonly available: bigint;
  readonly held: bigint;
}

type EventData = Readonly<Record<string, string | undefined>> & { readonly charge?: { readonly cost: string } };

/** Returns the rules that do not hold in a world whose plan has been carried out. */
export async function checkWorld(world: SimulatedWorld): Promise<readonly RuleViolation[]> {
  const check = new WorldCheck(world);
  for await (const batch of withUpcasting(world.store, EVENT_SCHEMA).readAll(START_POSITION)) await check.add(batch);
  await check.run();
  return check.violations;
}

class WorldCheck {
  readonly violations: RuleViolation[] = [];
  private readonly events: StoredEvent[] = [];
  private readonly auditor = new Auditor({
    maxOpenInvoices: MAX_OPEN_INVOICES,
    autoTopupLimits: AUTO_TOPUP_LIMITS,
  });
  private readonly requests: ReadonlyMap<string, SentRequest>;
  private readonly recorded = new Map<string, RecordedRequest>();
  /** When holds were placed and would expire, in milliseconds since the start. */
  private readonly placedHolds = new Map<string, { readonly atMs: number; readonly expiresAtMs: number }>();
  /** By account, in order. */
  private readonly money = new Map<string, AccountMoney[]>();
  /** What customers see of their API keys. */
  private readonly shownKeys = new MemoryReadModel(keys);
  private readonly openHolds = new MemoryReadModel(holds);

  constructor(private readonly world: SimulatedWorld) {
    this.requests = new Map(world.requests.map((request) => [request.step.id, request]));
  }

  async add(batch: EventBatch): Promise<void> {
    for (const model of [this.shownKeys, this.openHolds]) await model.apply(batch);
    for (const event of batch.events) {
      this.events.push(event);
      this.auditor.apply(event);
      this.record(event);
      this.recordMoney(event);
    }
  }

  async run(): Promise<void> {
    const { world, auditor } = this;
    const aliveOwners = new Set(world.runningGateways.map(({ process }) => process.name));
    const lost = world.network.payments.filter(({ confirmations }) => confirmations === 'lost');
    const lostPayments = new Set(lost.map(({ reference, id }) => `${world.network.getBackend(reference)}/${id}`));
    auditor.finish({ aliveOwners, now: world.now, lostPayments });
    this.violations.push(...auditor.findings);
    for (const [key, attempts] of Map.groupBy(world.requests, ({ step }) => step.idempotencyKey))
      if (key !== undefined) this.checkRepeats(key, attempts);
    for (const request of world.requests) {
      this.checkOutcome(request);
      this.checkRejection(request);
      this.checkBill(request);
    }
    this.events.forEach((event, i) => {
      this.checkHold(event, this.events[i + 1]);
      this.checkExtension(event);
    });
    this.checkPayments();
    this.checkStops();
    this.checkReadModels();
    for (const { process, problem, error } of world.bugs)
      this.report('no error is a bug', `${process}: ${problem}: ${error}`);
    for (const { process, problem } of world.reports)
      if (problem.endsWith('does not match its events')) this.report('snapshots match', `${process}: ${problem}`);
    for (const [stream, events] of Map.groupBy(this.events, (event) => event.stream))
      if (stream.startsWith(ACCOUNT_PREFIX)) await this.checkStates(stream, events);
  }

  private report(rule: string, detail: string): void {
    this.violations.push({ rule, detail });
  }

  private record({ type, data: unparsed }: StoredEvent): void {
    const data = unparsed as EventData;
    if (data.holdId === undefined) return;
    const entry = this.recorded.get(data.holdId) ?? { charged: 0n, cost: 0n };
    this.recorded.set(data.holdId, entry);
    if (type === 'HoldSettled') entry.charged += BigInt(data.charged ?? 0);
    if (type === 'HoldSettled' || type === 'ChargeAbsorbed') entry.cost += BigInt(data.charge?.cost ?? 0);
    if (type === 'ChargeReversed') entry.charged -= BigInt(data.charged ?? 0);
  }

  private recordMoney({ stream, recordedAt }: StoredEvent): void {
    const id = stream.slice(ACCOUNT_PREFIX.length);
    const account = stream.startsWith(ACCOUNT_PREFIX) ? this.auditor.getAccount(id) : undefined;
    if (!account) return;
    const { available, held } = account;
    const timeline = this.money.get(id) ?? [];
    this.money.set(id, timeline);
    timeline.push({ atMs: this.world.toMs(recordedAt), available, held });
  }

  private checkOutcome({ step, outcome, process }: SentRequest): void {
    const { charged } = this.recorded.get(step.id) ?? { charged: 0n };
    if (step.idempotencyKey !== undefined && outcome) return; // see checkRepeats
    if (!outcome) {
      if (process && !process.hasEnded) this.report('each request ends', step.id);
      return;
    }
    if ('charged' in outcome) {
      if (outcome.charged !== charged)
        this.report('a response states its charge', `${step.id}: ${outcome.charged}, recorded ${charged}`);
      return;
    }
    const { error } = outcome;
    const isOwed = error instanceof UpstreamError && OWED_AFTER.has(error.code);
    // A process that is killed cannot reverse a charge that was confirmed too late.
    if (charged !== 0n && !isOwed && !process?.isKilled)
      this.report('a request that failed is free', `${step.id}: ${error}, recorded ${charged}`);
    const isExpected = error instanceof Rejection || error instanceof UpstreamError;
    if (!isExpected && this.isWithoutFaults)
      this.report('without faults nothing is unavailable', `${step.id}: ${error}`);
  }

  /** However often a request is sent with one key, it is charged once, and each response states this charge. */
  private checkRepeats(key: string, attempts: readonly SentRequest[]): void {
    const charges = attempts
      .flatMap(({ step }) => this.recorded.get(step.id)?.charged ?? [])
      .filter((charged) => charged > 0n);
    if (charges.length > 1) this.report('an idempotency key is charged once', `${key}: ${charges}`);
    const [charge = 0n] = charges;
    for (const { step, outcome } of attempts) {
      const stated = outcome && 'charged' in outcome ? outcome.charged : undefined;
      // A gateway that lost its hold serves its response for free.
      const isFree = stated === 0n && this.recorded.get(step.id)?.charged === 0n;
      if (stated !== undefined && stated !== charge && !isFree)
        this.report('a response states its charge', `${step.id}: ${stated}, recorded ${charge}`);
    }
    const isOwed = attempts.some(({ outcome, process }) => {
      const error = outcome && 'error' in outcome ? outcome.error : undefined;
      return !outcome || process?.isKilled || (error instanceof UpstreamError && OWED_AFTER.has(error.code));
    });
    const hasResponse = attempts.some(({ outcome }) => outcome && 'charged' in outcome);
    if (charge > 0n && !hasResponse && !isOwed)
      this.report('a request that failed is free', `${key}: recorded ${charge}, no response`);
  }

  private get isWithoutFaults(): boolean {
    const { storeFaults, outages, databaseFaults, databaseOutages, steps } = this.world.plan;
    const hasFailures =
      outages.length > 0 ||
      databaseFaults > 0 ||
      databaseOutages.length > 0 ||
      steps.some(({ step }) => step === 'suspend' || step === 'stop');
    return (
      !hasFailures &&
      Object.keys(NO_STORE_FAULTS).every((fault) => storeFaults[fault as keyof typeof storeFaults] === 0)
    );
  }

  /** A request is refused for lack of money only if there was too little, or others held some, while it waited. */
  private checkRejection({ step, outcome, sentAtMs, endedAtMs = sentAtMs }: SentRequest): void {
    const error = outcome && 'error' in outcome ? outcome.error : undefined;
    if (!(error instanceof Rejection && error.code === 'insufficient_balance')) return;
    const timeline = this.money.get(step.account) ?? [];
    const from = timeline.findLastIndex(({ atMs }) => atMs < sentAtMs - 1);
    const current = timeline.slice(Math.max(from, 0)).filter(({ atMs }) => atMs <= endedAtMs + 1);
    const first = getFirstPart(step);
    if (current.length > 0 && current.every(({ available, held }) => held === 0n && available >= first))
      this.report('a request is refused only for lack of money', `${step.id}: ${error.message}, needs ${first}`);
  }

  /**
   * A final payment of an invoice that a customer can know is credited once, whatever was reported for it; a payment
   * that was lost is not credited.
   */
  private checkPayments(): void {
    const { network } = this.world;
    const selectData = (type: string) =>
      this.events.flatMap((event) => (event.type === type ? [event.data as EventData] : []));
    const credits = Map.groupBy(selectData('CreditAdded'), ({ creditId }) => creditId);
    const reversals = Map.groupBy(selectData('CreditReversed'), ({ creditId }) => creditId);
    const sum = (entries: readonly EventData[] = []) =>
      entries.reduce((total, { amount = '0', bonus = '0' }) => total + BigInt(amount) + BigInt(bonus), 0n);
    const references = new Set(selectData('InvoiceIssued').map(({ reference }) => reference));
    for (const { reference, id, confirmations } of network.payments) {
      const key = `${network.getBackend(reference)}/${id}`;
      const count = credits.get(key)?.length ?? 0;
      if (confirmations === 'final' && references.has(reference) && count !== 1)
        this.report('a final payment is credited once', `${key}: ${count} times`);
      const remaining = sum(credits.get(key)) + sum(reversals.get(key));
      if (confirmations === 'lost' && remaining !== 0n)
        this.report('a lost payment is not credited', `${key}: ${remaining}`);
    }
    for (const { type, data, recordedAt } of this.events) {
      if (type !== 'PaymentReceived') continue;
      const { backend, id } = (data as { readonly payment: { readonly backend: string; readonly id: string } }).payment;
      const finalMs = network.finalTimesMs.get(`${backend}/${id}`) ?? Number.POSITIVE_INFINITY;
      if (this.world.toMs(recordedAt) < Math.floor(finalMs))
        this.report('only a final payment is received', `${backend}/${id} at ${recordedAt}`);
    }
  }

  private checkStops(): void {
    const { processes, faultsEndMs, time } = this.world;
    for (const process of processes)
      if (process.stopSignal.aborted && !process.hasEnded && time.nowMs > faultsEndMs + MAX_STOP_MS)
        this.report('a process that stops ends', process.name);
  }

  /** What a provider bills is in the ledger, unless the process that knew of it is gone, or has reported it as lost. */
  private checkBill({ step, process }: SentRequest): void {
    const { provider, reports } = this.world;
    const billed = BigInt(provider.getBilledTokens(step.id)) * (TOKEN_PRICE / 2n);
    const { cost } = this.recorded.get(step.id) ?? { cost: 0n };
    if (billed === cost) return;
    const isReported = reports.some(
      ({ problem }) => problem.startsWith(`hold ${step.id} `) && problem.endsWith('was not recorded'),
    );
    if (cost > billed || !(process?.hasEnded || isReported))
      this.report('the ledger has what providers bill', `${step.id}: billed ${billed}, recorded ${cost}`);
  }

  /** If a request for more money was rejected, the ledger held no more then than the gateway knew. */
  private checkExtension({ type, data: unparsed }: StoredEvent): void {
    if (type !== 'HoldSettled') return;
    const { holdId = '', held = '0', charged = '0' } = unparsed as EventData;
    const expected = this.world.exhaustedHolds.get(holdId);
    // In the end a hold is extended to the price of its response.
    if (expected !== undefined && BigInt(held) > expected && BigInt(charged) < BigInt(held))
      this.report('a hold that cannot be extended was not extended', `${holdId}: ${held}, expected ${expected}`);
  }

  /**
   * A hold is large enough to serve its request. It does not expire while its process runs, unless that absorbs the
   * charge of a response that could not be delivered, or the hold was confirmed too late to be used.
   */
  private checkHold({ type, stream, data: unparsed, recordedAt }: StoredEvent, next: StoredEvent | undefined): void {
    const { holdId = '', amount = '0', expiresAt = '' } = unparsed as EventData;
    const request = this.requests.get(holdId);
    if (!request?.process) return;
    const eventMs = this.world.toMs(recordedAt);
    if (type === 'FundsHeld') this.placedHolds.set(holdId, { atMs: eventMs, expiresAtMs: this.world.toMs(expiresAt) });
    if (type === 'FundsHeld' && BigInt(amount) < TOKEN_PRICE)
      this.report('a hold pays for the shortest response', `${holdId}: ${amount}`);
    const isAbsorbed =
      next?.type === 'ChargeAbsorbed' && next.stream === stream && (next.data as EventData).holdId === holdId;
    if (type !== 'HoldExpired' || isAbsorbed) return;
    const placed = this.placedHolds.get(holdId);
    const gapMs = request.process.getHeartbeatGapMs(placed?.atMs ?? 0, eventMs);
    const isUsed = this.world.provider.getBilledTokens(holdId) > 0 || (placed && eventMs >= placed.expiresAtMs);
    if (gapMs < MIN_DEAD_MS && isUsed)
      this.report('a hold expires only without its process', `${holdId} of ${request.process.name}: ${gapMs} ms`);
    const { endedAtMs } = request.process;
    const untilMs = Math.max(endedAtMs ?? eventMs, this.world.faultsEndMs) + MAX_SWEEP_MS;
    if (eventMs > untilMs) this.report('the money of a dead process is soon free', `${holdId}: at ${eventMs} ms`);
  }

  /** All processes have the state that the events give, with and without snapshots. */
  private async checkStates(stream: string, stored: readonly StoredEvent[]): Promise<void> {
    const { world } = this;
    const events = stored as unknown as readonly AccountEvent[];
    const folded = fold(accountDecider, accountDecider.getInitialState(), events);
    const expected = serializeState(folded);
    const compare = (source: string, state: AccountState) => {
      const actual = serializeState(state);
      if (actual !== expected)
        this.report('a state is the fold of its events', `${stream}, ${source}: ${actual}, not ${expected}`);
    };
    this.compareWithAudit(stream, folded);
    if (folded.holds.size === 0) this.checkSums(stream, folded);
    compare('decoded', accountCodec.decode(JSON.parse(JSON.stringify(accountCodec.encode(folded))) as never));
    const snapshot = await world.snapshots.load(stream, accountCodec.version);
    if (snapshot) {
      const restored = accountCodec.decode(snapshot.state as never);
      compare('from its snapshot', fold(accountDecider, restored, events.slice(snapshot.revision - NO_STREAM)));
    }
    for (const gateway of world.runningGateways) {
      const reading = gateway.streams.accounts.read(stream.slice(ACCOUNT_PREFIX.length));
      const comparing = reading.then((state) => compare(gateway.process.name, state));
      await world.time.run(world.time.nowMs + STATE_READ_MS);
      await comparing;
    }
  }

  /** What a process folded while the events were stored, with interruptions, is the fold of all events. */
  private checkReadModels(): void {
    for (const { process, openHolds, shownKeys } of this.world.runningLeaders)
      for (const [live, refolded] of [
        [openHolds, this.openHolds],
        [shownKeys, this.shownKeys],
      ] as const)
        if (serializeRows(live) !== serializeRows(refolded))
          this.report('read models are the fold of their events', `${process.name}: ${live.name}`);
  }

  /** A customer is never refused while the key shows that its limit is not used up. */
  private checkShownUsage(
    keyId: string,
    { usedInAll, window, used }: Pick<ApiKeyState, 'usedInAll' | 'window' | 'used'>,
  ) {
    const row = this.shownKeys.rows.get(keyId);
    const displayed = row?.used_in === window ? row.used : '0';
    if (row?.used_in_all !== String(usedInAll) || displayed !== String(used))
      this.report(
        'a key shows what counts towards its limit',
        `${keyId}: ${displayed} of ${row?.used_in_all}, counted ${used} of ${usedInAll} in ${window}`,
      );
  }

  /** Nothing is held, exposed or reserved without a hold. */
  private checkSums(stream: string, { held, exposure, reserve, keys: apiKeys }: AccountState): void {
    for (const [subject, sums] of [['account', { held, exposure, reserve }] as const, ...apiKeys])
      if (sums.held !== 0n || sums.exposure !== 0n || sums.reserve !== 0n)
        this.report(
          'without holds nothing is held',
          `${stream}: ${subject}: ${sums.held}, ${sums.exposure}, ${sums.reserve}`,
        );
  }

  private compareWithAudit(stream: string, { available, held, keys: apiKeys }: AccountState): void {
    const audited = this.auditor.getAccount(stream.slice(ACCOUNT_PREFIX.length));
    if (!audited) return;
    const compare = (subject: string, actual: bigint, expected: bigint) => {
      if (actual !== expected)
        this.report('states have the amounts of the audit', `${stream}: ${subject} ${actual}, audited ${expected}`);
    };
    compare('available', available, audited.available);
    compare('held', held, audited.held);
    for (const [keyId, { usedInAll, window, used }] of apiKeys) {
      const key = audited.keys.get(keyId);
      compare(`${keyId} used`, usedInAll, key?.usedInAll ?? 0n);
      if (key?.window === window) compare(`${keyId} used in ${window}`, used, key.used.get(window) ?? 0n);
      this.checkShownUsage(keyId, { usedInAll, window, used });
    }
  }
}

function serializeRows({ rows }: Pick<MemoryReadModel<ReadModelRow>, 'rows'>): string {
  return JSON.stringify([...rows].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the complete state as text, with the entries of maps in the order of their keys. */
function serializeState(state: AccountState): string {
  return JSON.stringify(state, (_, value: unknown) => {
    if (typeof value === 'bigint') return `${value}`;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
