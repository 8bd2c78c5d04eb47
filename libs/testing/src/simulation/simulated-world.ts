/**
 * An installation in virtual time: gateways, a leader that ends abandoned holds, an operator, clients, a provider and
 * an event store. The code of the product is the real one; only what is outside of it is simulated.
 */
import { createStreams, getClaimLeaseMs, shareEventLoop } from '#application';
import { CATEGORIES, EVENT_SCHEMA } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { type EventStore, isProgrammingError, withUpcasting } from '#kernel';
import type { CreatedTopup } from '../../../application/src/topups/create-topup.ts';
import { ProcessPresence } from '../../../foundation/src/process-presence.ts';
import { holds } from '../../../projections/src/holds.ts';
import { Chance } from './chance.ts';
import { FaultyEventStore, NO_STORE_FAULTS, StoreServer } from './faulty-event-store.ts';
import { MemoryCheckpoints } from './memory-checkpoints.ts';
import { MemoryIdempotencyStore } from './memory-idempotency-store.ts';
import { MemoryLeases } from './memory-leases.ts';
import { MemoryPresence } from './memory-presence.ts';
import { MemoryReadModel } from './memory-read-model.ts';
import { MemorySnapshots } from './memory-snapshots.ts';
import { MemoryWorkflowSchedule } from './memory-workflow-schedule.ts';
import { payInvoice } from './pay-invoice.ts';
import type { FailureStep, Plan, RequestStep, Step, TopupStep, WalletStep } from './plan.ts';
import { createRemote, type RemoteOptions } from './remote.ts';
import { LIMITS, SimulatedGateway } from './simulated-gateway.ts';
import { SimulatedLeader } from './simulated-leader.ts';
import { SimulatedOperator, toKeyId } from './simulated-operator.ts';
import { NO_PAYMENT_FAULTS, PaymentNetwork } from './simulated-payments.ts';
import { SimulatedProcess } from './simulated-process.ts';
import { SimulatedProvider } from './simulated-provider.ts';
import { SimulatedTime } from './simulated-time.ts';
import { NO_WALLET_FAULTS, type WalletFaults } from './simulated-wallets.ts';

const MAX_RESTART_MS = 30_000;
const REGISTRATION_PAUSE_MS = 1_000;
const TOPUP_TIMEOUT_MS = 60_000;
/** An operator or client does not wait longer for a response. */
const RESPONSE_TIMEOUT_MS = 900_000;
/** Time after the last step in which everything must end. */
const MAX_SETTLING_MS = 1_200_000;
/** Retries of what nobody waits for are up to a minute apart. */
const MIN_SETTLING_MS = 120_000;
const SETTLING_STEP_MS = 5_000;

/** What a client got for its request. */
export type RequestResult = { readonly charged: bigint } | { readonly error: unknown };

export interface SentRequest {
  readonly step: RequestStep;
  readonly sentAtMs: number;
  /** Undefined if the connection broke without a response, or the gateway could not be reached. */
  outcome?: RequestResult;
  endedAtMs?: number;
  /** The run of the gateway that got the request; undefined if it could not be reached. */
  readonly process?: SimulatedProcess;
}

/** The place of a process, which runs again after each of its ends. */
interface Slot<T> {
  runs: number;
  running: T | undefined;
}

export interface Report {
  readonly process: string;
  readonly atMs: number;
  readonly problem: string;
  readonly error: unknown;
}

export class SimulatedWorld {
  readonly time = new SimulatedTime();
  readonly store: MemoryEventStore;
  readonly provider: SimulatedProvider;
  readonly requests: SentRequest[] = [];
  readonly reports: Report[] = [];
  readonly faults = new Map<string, number>();
  /** What gateways knew of the holds that could not be extended further, in pico-USD by request. */
  readonly exhaustedHolds = new Map<string, bigint>();
  /** All runs of all processes. */
  readonly processes: SimulatedProcess[] = [];
  readonly snapshots = new MemorySnapshots();
  readonly network: PaymentNetwork;
  private readonly schedule = new MemoryWorkflowSchedule();
  private readonly checkpoints = new MemoryCheckpoints();
  private readonly idempotencyStore: MemoryIdempotencyStore;
  private readonly database: RemoteOptions;
  private areFaultsOver = false;
  private readonly chance: Chance;
  private readonly startMs: number;
  private readonly server: StoreServer;
  private readonly gateways: readonly Slot<SimulatedGateway>[];
  private readonly leaders: readonly Slot<SimulatedLeader>[];
  private readonly leases: MemoryLeases;
  private readonly presence: MemoryPresence;
  private pending = 0;
  /** References of invoices that customers got, by top-up of the plan. */
  private readonly references = new Map<string, string>();

  constructor(readonly plan: Plan) {
    this.chance = new Chance(plan.seed).derive('world');
    this.startMs = Date.parse(plan.startsAt);
    this.store = new MemoryEventStore(
      CATEGORIES.map((category) => `${category}-`),
      () => new Date(this.startMs + Math.floor(this.time.nowMs)).toISOString(),
    );
    this.server = new StoreServer(this.store);
    this.provider = new SimulatedProvider(this.time, this.chance.derive('provider'));
    this.network = new PaymentNetwork({
      time: this.time,
      chance: this.chance.derive('payments'),
      startMs: this.startMs,
      getFaults: () => (this.areFaultsOver ? NO_PAYMENT_FAULTS : plan.paymentFaults),
    });
    this.database = {
      time: this.time,
      chance: this.chance.derive('database'),
      getFailureRate: () => (this.areFaultsOver ? 0 : plan.databaseFaults),
      outages: plan.databaseOutages,
    };
    this.idempotencyStore = new MemoryIdempotencyStore(() => this.startMs + this.time.nowMs, getClaimLeaseMs(LIMITS));
    this.leases = new MemoryLeases(() => this.startMs + this.time.nowMs);
    this.presence = new MemoryPresence(() => this.startMs + this.time.nowMs);
    this.gateways = plan.skewsMs.map(() => ({ runs: 0, running: undefined }));
    this.leaders = Array.from({ length: plan.leaders }, () => ({ runs: 0, running: undefined }));
  }

  /** Takes all steps of the plan, and waits until everything has ended. */
  async run(): Promise<void> {
    shareEventLoop(undefined);
    this.gateways.forEach((_, index) => {
      void this.track(this.startGateway(index));
    });
    this.leaders.forEach((_, index) => {
      this.startLeader(index);
    });
    const process = this.startProcess('operator');
    const streams = createStreams(this.openStore(process), this.snapshots, process.runtime, this.plan);
    const operator = new SimulatedOperator(process, streams, this.startMs);
    void this.track(operator.publishPrices());
    for (const step of this.plan.steps) this.time.startTimer(step.atMs, () => this.take(step, operator));
    await this.time.run(this.plan.durationMs);
    this.areFaultsOver = true;
    const endMs = Math.max(this.faultsEndMs, this.lastRequestMs);
    await this.time.run(endMs + MIN_SETTLING_MS);
    while (this.time.nowMs < endMs + MAX_SETTLING_MS && (this.pending > 0 || (await this.hasOpenHolds())))
      await this.time.run(this.time.nowMs + SETTLING_STEP_MS);
    await this.time.run(this.time.nowMs + SETTLING_STEP_MS); // so that followers receive the last events
  }

  /** From when on nothing fails any more, in milliseconds since the start. */
  get faultsEndMs(): number {
    const { durationMs, outages, databaseOutages } = this.plan;
    return Math.max(durationMs, ...[...outages, ...databaseOutages].map(({ untilMs }) => untilMs));
  }

  private get lastRequestMs(): number {
    const times = this.plan.steps.flatMap((step) => {
      const repeats = step.step === 'request' ? (step.repeats ?? []) : [];
      return repeats.map(({ afterMs }) => step.atMs + afterMs);
    });
    return Math.max(0, ...times);
  }

  /** Converts an instant to milliseconds since the start. */
  toMs(instant: string): number {
    return Date.parse(instant) - this.startMs;
  }

  /** Gateways that still run. */
  get runningGateways(): readonly SimulatedGateway[] {
    return this.gateways.flatMap(({ running }) => (running?.process.isRunning ? [running] : []));
  }

  get runningLeaders(): readonly SimulatedLeader[] {
    return this.leaders.flatMap(({ running }) => (running?.process.isRunning ? [running] : []));
  }

  private readonly getWalletFaults = (): WalletFaults =>
    this.areFaultsOver ? NO_WALLET_FAULTS : this.plan.walletFaults;

  /** Returns the event store as a new process without faults sees it. */
  openStore(process: SimulatedProcess): EventStore {
    const options = {
      time: this.time,
      chance: this.chance.derive('store'),
      getFaults: () => (this.areFaultsOver ? NO_STORE_FAULTS : this.plan.storeFaults),
      outages: this.plan.outages,
      kill: () => this.killProcess(process),
      onFault: (fault: string) => void this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1),
    };
    return withUpcasting(new FaultyEventStore(this.server, process, options), EVENT_SCHEMA);
  }

  startProcess(name: string, skewMs = 0): SimulatedProcess {
    const process = new SimulatedProcess(
      name,
      {
        time: this.time,
        chance: this.chance.derive('processes'),
        startMs: this.startMs,
        reportError: (problem, error) =>
          void this.reports.push({ process: name, atMs: this.time.nowMs, problem, error }),
      },
      skewMs,
    );
    this.processes.push(process);
    return process;
  }

  private async hasOpenHolds(): Promise<boolean> {
    const open = new MemoryReadModel(holds);
    for await (const batch of withUpcasting(this.store, EVENT_SCHEMA).readAll(-1n)) await open.apply(batch);
    return open.rows.size > 0;
  }

  private take(step: Step, operator: SimulatedOperator): void {
    switch (step.step) {
      case 'request':
        this.request(step);
        break;
      case 'topUp':
        void this.track(this.topUp(step));
        break;
      case 'connectWallet':
      case 'disconnectWallet':
        this.changeWallet(step);
        break;
      case 'kill':
      case 'loseHost':
      case 'stop':
      case 'suspend':
      case 'disconnect':
        this.fail(step);
        break;
      default:
        void this.track(operator.perform(step));
    }
  }

  private async track(work: Promise<void>): Promise<void> {
    this.pending++;
    try {
      await work;
    } finally {
      this.pending--;
    }
  }

  // gateways --------------------------------------------------------------------------------------------------------

  private async startGateway(index: number): Promise<void> {
    const slot = this.gateways[index] as Slot<SimulatedGateway>;
    const process = this.startProcess(`gateway${index}-${++slot.runs}`, this.plan.skewsMs[index]);
    const presence = await this.register(process);
    slot.running = new SimulatedGateway({
      process,
      store: this.openStore(process),
      snapshots: this.snapshots,
      provider: this.provider,
      network: this.network,
      getWalletFaults: this.getWalletFaults,
      onExhausted: (requestId, held) => void this.exhaustedHolds.set(requestId, held),
      idempotencyStore: createRemote('idempotency keys', this.idempotencyStore, process, this.database),
      plan: this.plan,
      presence,
    });
  }

  /** Registers a process, as often as it takes. A heartbeat that fails ends its connection, as in PostgreSQL. */
  private async register(process: SimulatedProcess): Promise<ProcessPresence> {
    const { runtime } = process;
    const table = this.presence.open(process);
    const remote = createRemote('presence', table, process, this.database);
    const record = async (id: string, durationMs: number) => {
      await remote.record(id, durationMs).catch((error) => {
        this.presence.disconnect(process);
        throw error;
      });
      process.heartbeatsMs.push(this.time.nowMs);
    };
    const { hasDiskSpace, end, removeOld } = remote;
    const calls = { record, hasDiskSpace, end, removeOld, close: table.close };
    for (;;)
      try {
        return await ProcessPresence.register(process.name, calls, runtime, runtime);
      } catch {
        await runtime.sleep(REGISTRATION_PAUSE_MS);
      }
  }

  private getSlot({ role, index }: FailureStep): Slot<SimulatedGateway | SimulatedLeader> | undefined {
    return role === 'gateway' ? this.gateways[index] : this.leaders[index];
  }

  private restart({ role, index, lengthMs }: FailureStep): void {
    this.time.startTimer(lengthMs, () => {
      if (role === 'gateway') void this.track(this.startGateway(index));
      else this.startLeader(index);
    });
  }

  private fail(step: FailureStep): void {
    const slot = this.getSlot(step);
    const { running } = slot ?? {};
    if (!slot || !running) return;
    const { process } = running;
    if (step.step === 'disconnect') {
      this.presence.disconnect(process);
      this.leases.disconnect(process);
      return;
    }
    if (step.step === 'suspend') {
      if (!process.isRunning) return;
      process.suspend();
      this.time.startTimer(step.lengthMs, () => process.resume());
      return;
    }
    slot.running = undefined;
    if (step.step !== 'stop') process.kill({ losesHost: step.step === 'loseHost' });
    else void running.stop().then(() => process.exit());
    this.restart(step);
  }

  /** Kills a process that is not the operator's, and starts it again later. */
  private killProcess(process: SimulatedProcess): void {
    for (const role of ['gateway', 'leader'] as const) {
      const index = (role === 'gateway' ? this.gateways : this.leaders).findIndex(
        (slot) => slot.running?.process === process,
      );
      const lengthMs = this.chance.chooseScaled(100, MAX_RESTART_MS, `restart of ${process.name}`);
      if (index >= 0) this.fail({ atMs: this.time.nowMs, step: 'kill', role, index, lengthMs });
    }
  }

  /** Sends a request, and the same one again if the plan says so. */
  private request({ repeats = [], ...step }: RequestStep): void {
    if (repeats.length === 0) {
      void this.track(this.send(step));
      return;
    }
    const keyed = { ...step, idempotencyKey: step.id };
    void this.track(this.send(keyed));
    repeats.forEach(({ afterMs, gateway }, i) => {
      const repeat = { ...keyed, id: `${step.id}.${i + 1}`, gateway };
      this.time.startTimer(afterMs, () => void this.track(this.send(repeat)));
    });
  }

  private async send(step: RequestStep): Promise<void> {
    const gateway = this.gateways[step.gateway]?.running;
    const sent: SentRequest = { step, sentAtMs: this.time.nowMs, ...(gateway ? { process: gateway.process } : {}) };
    this.requests.push(sent);
    if (!gateway) return;
    const { promise: disconnected, resolve } = Promise.withResolvers<void>();
    const { disconnectsAfterMs } = step;
    if (disconnectsAfterMs !== undefined)
      this.time.startTimer(disconnectsAfterMs, () => gateway.process.deliver(resolve));
    const keyId = step.key === null ? null : toKeyId(step.account, step.key);
    gateway.process.deliver(() => {
      void gateway
        .serve(step, keyId, { disconnected, storesResponse: false })
        .then(
          (charged): RequestResult => ({ charged }),
          (error: unknown): RequestResult => ({ error }),
        )
        .then((outcome) => {
          sent.outcome = outcome;
          sent.endedAtMs = this.time.nowMs;
        });
    });
    const untilMs = this.time.nowMs + RESPONSE_TIMEOUT_MS;
    while (!sent.outcome && !gateway.process.hasEnded && this.time.nowMs < untilMs) await this.time.wait(1_000);
  }

  /** Requests a top-up, and pays what was requested. */
  private async topUp(step: TopupStep): Promise<void> {
    const gateway = this.gateways[step.gateway]?.running;
    if (!gateway) return;
    const { promise: created, resolve } = Promise.withResolvers<CreatedTopup | undefined>();
    gateway.process.deliver(() => void gateway.topUp(step).then(resolve, () => resolve(undefined)));
    const untilMs = this.time.nowMs + TOPUP_TIMEOUT_MS;
    this.time.startTimer(TOPUP_TIMEOUT_MS, () => resolve(undefined));
    const topup = await created;
    if (!topup || this.time.nowMs > untilMs) return;
    const { reference, units } = topup.invoice;
    this.references.set(step.id, reference);
    for (const [i, payment] of step.payments.entries()) {
      const id = `${reference}-${i}`;
      this.time.startTimer(payment.afterMs, () => {
        const alsoFor = payment.alsoFor === undefined ? undefined : this.references.get(payment.alsoFor);
        payInvoice(this.network, payment, {
          id,
          references: [reference, ...(alsoFor ? [alsoFor] : [])],
          units: BigInt(units),
        });
      });
    }
  }

  private changeWallet(step: WalletStep): void {
    const gateway = this.gateways[step.gateway]?.running;
    gateway?.process.deliver(() => void gateway.changeWallet(step).catch(() => {})); // nobody tries again
  }

  // leaders -----------------------------------------------------------------------------------------------------------

  private startLeader(index: number): void {
    const slot = this.leaders[index] as Slot<SimulatedLeader>;
    const process = this.startProcess(`leader${index}-${++slot.runs}`, this.plan.leaderSkewsMs[index]);
    slot.running = new SimulatedLeader({
      process,
      shared: {
        store: this.openStore(process),
        schedule: this.schedule,
        checkpoints: this.checkpoints,
        network: this.network,
        getWalletFaults: this.getWalletFaults,
      },
      snapshots: this.snapshots,
      leases: this.leases,
      database: this.database,
      plan: this.plan,
      presence: this.presence,
    });
  }

  /** ISO 8601. */
  get now(): string {
    return this.toInstant();
  }

  private toInstant(atMs = this.time.nowMs): string {
    return new Date(this.startMs + Math.floor(atMs)).toISOString();
  }

  /** Returns reports of bugs: errors that no fault causes. */
  get bugs(): readonly Report[] {
    return this.reports.filter(({ error }) => isProgrammingError(error));
  }
}
