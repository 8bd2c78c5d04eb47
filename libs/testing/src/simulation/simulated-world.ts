/**
 * An installation in virtual time: gateways, a leader that ends abandoned holds, an operator, clients, a provider and
 * an event store. The code of the product is the real one; only what is outside of it is simulated.
 */
import { createStreams, HoldCommandRouter, type Streams, shareEventLoop } from '#application';
import { type AccountCommand, CATEGORIES, EVENT_SCHEMA, UNRESTRICTED_ACCESS } from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  type CommandOutcome,
  createRootCause,
  type EventStore,
  isProgrammingError,
  pump,
  Rejection,
  retryWhileUnavailable,
  type Snapshot,
  type SnapshotStore,
  StoreUnavailableError,
  toPicoUsd,
  withUpcasting,
} from '#kernel';
import { expireHolds } from '#sagas';
import { holds } from '../../../projections/src/holds.ts';
import { Chance } from './chance.ts';
import { FaultyEventStore, NO_STORE_FAULTS, type StoreFaults, StoreServer } from './faulty-event-store.ts';
import { MemoryReadModel } from './memory-read-model.ts';
import type { KeyTerms, Plan, RequestStep, Step } from './plan.ts';
import { PRICE_LIST, SimulatedGateway } from './simulated-gateway.ts';
import { SimulatedProcess } from './simulated-process.ts';
import { SimulatedProvider } from './simulated-provider.ts';
import { SimulatedTime } from './simulated-time.ts';

const HEARTBEAT_MS = 1_000;
/** A process whose last heartbeat is older seems dead to others; after half of it, it places no holds. */
const STALE_AFTER_MS = 5_000;
const DRAIN_MS = 30_000;
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

interface GatewaySlot {
  runs: number;
  gateway: SimulatedGateway | undefined;
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
  /** All runs of all processes. */
  readonly processes: SimulatedProcess[] = [];
  readonly snapshots = new MemorySnapshots();
  private readonly chance: Chance;
  private readonly startMs: number;
  private readonly server: StoreServer;
  private readonly slots: readonly GatewaySlot[];
  private readonly heartbeats = new Map<string, number>();
  private storeFaults: StoreFaults;
  private pending = 0;

  constructor(readonly plan: Plan) {
    this.chance = new Chance(plan.seed).derive('world');
    this.startMs = Date.parse(plan.startsAt);
    this.store = new MemoryEventStore(
      CATEGORIES.map((category) => `${category}-`),
      () => new Date(this.startMs + Math.floor(this.time.nowMs)).toISOString(),
    );
    this.server = new StoreServer(this.store);
    this.provider = new SimulatedProvider(this.time, this.chance.derive('provider'));
    this.slots = plan.skewsMs.map(() => ({ runs: 0, gateway: undefined }));
    this.storeFaults = plan.storeFaults;
  }

  /** Takes all steps of the plan, and waits until everything has ended. */
  async run(): Promise<void> {
    shareEventLoop(undefined);
    this.slots.forEach((_, index) => {
      this.startGateway(index);
    });
    const operator = this.startOperator();
    this.startLeader();
    void this.track(this.publishPrices(operator));
    for (const step of this.plan.steps) this.time.startTimer(step.atMs, () => this.take(step, operator));
    await this.time.run(this.plan.durationMs);
    this.storeFaults = NO_STORE_FAULTS;
    const { faultsEndMs } = this;
    await this.time.run(faultsEndMs + MIN_SETTLING_MS);
    while (this.time.nowMs < faultsEndMs + MAX_SETTLING_MS && (this.pending > 0 || (await this.hasOpenHolds())))
      await this.time.run(this.time.nowMs + SETTLING_STEP_MS);
  }

  /** From when on nothing fails any more, in milliseconds since the start. */
  get faultsEndMs(): number {
    return Math.max(this.plan.durationMs, ...this.plan.outages.map(({ untilMs }) => untilMs));
  }

  /** Converts an instant to milliseconds since the start. */
  toMs(instant: string): number {
    return Date.parse(instant) - this.startMs;
  }

  /** Returns the processes that still run. */
  get runningGateways(): readonly SimulatedGateway[] {
    return this.slots.flatMap(({ gateway }) => (gateway?.process.isRunning ? [gateway] : []));
  }

  /** Returns the event store as a new process without faults sees it. */
  openStore(process: SimulatedProcess): EventStore {
    const options = {
      time: this.time,
      chance: this.chance.derive('store'),
      getFaults: () => this.storeFaults,
      outages: this.plan.outages,
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

  private take(step: Step, operator: Streams): void {
    switch (step.step) {
      case 'request':
        void this.track(this.send(step));
        break;
      case 'kill':
        this.killGateway(step.gateway, step.downMs);
        break;
      case 'stop':
        void this.track(this.stopGateway(step.gateway, step.downMs));
        break;
      case 'suspend':
        this.suspendGateway(step.gateway, step.forMs);
        break;
      default:
        void this.track(this.operate(step, operator));
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

  private startGateway(index: number): void {
    const slot = this.slots[index] as GatewaySlot;
    const process = this.startProcess(`gateway${index}-${++slot.runs}`, this.plan.skewsMs[index]);
    let lastHeartbeatMs = this.time.nowMs;
    const beat = () => {
      lastHeartbeatMs = this.time.nowMs;
      this.heartbeats.set(process.name, lastHeartbeatMs);
      process.runtime.startTimer(HEARTBEAT_MS, beat);
    };
    beat();
    slot.gateway = new SimulatedGateway({
      process,
      store: this.openStore(process),
      snapshots: this.snapshots,
      provider: this.provider,
      plan: this.plan,
      getProcessId: () => {
        if (this.time.nowMs - lastHeartbeatMs <= STALE_AFTER_MS / 2) return process.name;
        throw new StoreUnavailableError('others may consider this process dead');
      },
    });
  }

  private killGateway(index: number, downMs: number): void {
    const slot = this.slots[index] as GatewaySlot;
    if (!slot.gateway) return;
    slot.gateway.process.kill();
    slot.gateway = undefined;
    this.time.startTimer(downMs, () => this.startGateway(index));
  }

  private async stopGateway(index: number, downMs: number): Promise<void> {
    const slot = this.slots[index] as GatewaySlot;
    const { gateway } = slot;
    if (!gateway) return;
    slot.gateway = undefined;
    void gateway.drain(DRAIN_MS).then(() => gateway.process.exit());
    this.time.startTimer(downMs, () => this.startGateway(index));
  }

  private suspendGateway(index: number, forMs: number): void {
    const process = this.slots[index]?.gateway?.process;
    if (!process?.isRunning) return;
    process.suspend();
    this.time.startTimer(forMs, () => process.resume());
  }

  private async send(step: RequestStep): Promise<void> {
    const gateway = this.slots[step.gateway]?.gateway;
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

  // leader ------------------------------------------------------------------------------------------------------------

  private startLeader(): void {
    const process = this.startProcess('leader');
    const store = this.openStore(process);
    const streams = createStreams(store, this.snapshots, process.runtime, this.plan);
    const openHolds = new MemoryReadModel(holds);
    const { signal } = new AbortController();
    void pump(store.subscribe.bind(store), openHolds, signal, process.runtime);
    const rows = () => [...openHolds.rows.values()];
    void expireHolds(
      {
        payers: new HoldCommandRouter(streams),
        clock: process.clock,
        runtime: process.runtime,
        findOverduePayers: async (at) => [
          ...new Set(rows().flatMap(({ payer, expires_at }) => (expires_at <= at ? [payer] : []))),
        ],
        findStaleProcesses: async () =>
          [...this.heartbeats].flatMap(([id, atMs]) => (this.time.nowMs - atMs > STALE_AFTER_MS ? [id] : [])),
        findPayersByOwner: async (owners) =>
          rows().flatMap(({ payer, owner }) => (owner !== null && owners.includes(owner) ? [{ payer, owner }] : [])),
      },
      signal,
    );
  }

  // operator ----------------------------------------------------------------------------------------------------------

  private startOperator(): Streams {
    const process = this.startProcess('operator');
    return createStreams(this.openStore(process), this.snapshots, process.runtime, this.plan);
  }

  private async publishPrices({ priceLists }: Streams): Promise<void> {
    const data = { version: PRICE_LIST, lines: [], at: this.toInstant() };
    const command = { type: 'PublishPriceList', data } as const;
    await this.repeat(() => priceLists.run(PRICE_LIST, command, createRootCause('operator', PRICE_LIST)));
  }

  private async operate(step: Exclude<Step, { gateway: number }>, streams: Streams): Promise<void> {
    const command = this.toCommand(step);
    const run = (): Promise<CommandOutcome<unknown>> =>
      streams.accounts.run(step.account, command, createRootCause('operator', JSON.stringify(step)));
    await this.repeat(run);
    // A command that is delivered twice has no further effect.
    if (step.step === 'credit' || step.step === 'adjust') await this.repeat(run);
    for (const [i, key] of step.step === 'open' ? step.keys.entries() : [])
      await this.createKey(step.account, i, key, streams);
  }

  private async createKey(account: string, index: number, { limit, reset, expiresAtMs }: KeyTerms, streams: Streams) {
    const key = {
      keyId: toKeyId(account, index),
      name: `key ${index}`,
      hash: `${account} ${index}`,
      secret: { key: '', box: '' },
      ...UNRESTRICTED_ACCESS,
      limit,
      resetPeriod: reset,
      expireAt: expiresAtMs === null ? null : this.toInstant(expiresAtMs),
    };
    const command = { type: 'CreateKey', data: { key, at: this.toInstant() } } as const;
    await this.repeat(() => streams.accounts.run(account, command, createRootCause('operator', key.keyId)));
  }

  /** A rejection is a result; while the store is unavailable the operator tries again. */
  private async repeat(run: () => Promise<unknown>): Promise<void> {
    const [operator] = this.processes.filter(({ name }) => name === 'operator') as [SimulatedProcess];
    const options = { runtime: operator.runtime, problem: 'the operator tries again', shouldRetry: () => true };
    await retryWhileUnavailable(run, options).catch((error) => {
      if (!(error instanceof Rejection)) throw error;
    });
  }

  private toCommand(step: Exclude<Step, { gateway: number }>): AccountCommand {
    const at = this.toInstant();
    switch (step.step) {
      case 'open':
        return { type: 'OpenAccount', data: { at } };
      case 'credit':
        return {
          type: 'AddCredit',
          data: { creditId: step.id, method: 'btc', amount: toPicoUsd(BigInt(step.amount)), bonus: toPicoUsd(0n), at },
        };
      case 'reverse':
        return {
          type: 'ReverseCredit',
          data: {
            reversalId: `${step.credit} reversed`,
            creditId: step.credit,
            method: 'btc',
            amount: toPicoUsd(-BigInt(step.amount)),
            bonus: toPicoUsd(0n),
            why: 'charged back',
            at,
          },
        };
      case 'adjust':
        return {
          type: 'AdjustBalance',
          data: {
            adjustmentId: step.id,
            amount: toPicoUsd(BigInt(step.amount)),
            reason: 'goodwill',
            actor: { name: 'operator', isVerified: false },
            at,
          },
        };
      case 'changeKey':
        return this.toKeyCommand(step, at);
      default:
        return step satisfies never;
    }
  }

  private toKeyCommand({ account, key, change }: Extract<Step, { step: 'changeKey' }>, at: string): AccountCommand {
    const keyId = toKeyId(account, key);
    if (change === 'revoke') return { type: 'RevokeKey', data: { keyId, at } };
    if (typeof change === 'string')
      return { type: 'UpdateKey', data: { keyId, changes: { blocked: change === 'block' }, at } };
    const changes = 'limit' in change ? { limit: change.limit } : { resetPeriod: change.reset };
    return { type: 'UpdateKey', data: { keyId, changes, at } };
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

export function toKeyId(account: string, index: number): string {
  return `${account}-key${index}`;
}

/** Snapshots of any revision, as they are saved. */
class MemorySnapshots implements SnapshotStore {
  readonly saved = new Map<string, Snapshot>();

  async load(stream: string, version: string): Promise<Snapshot | undefined> {
    return this.saved.get(`${version} ${stream}`);
  }

  async save(stream: string, version: string, snapshot: Snapshot): Promise<void> {
    this.saved.set(`${version} ${stream}`, structuredClone(snapshot));
  }

  async drop(stream: string): Promise<void> {
    for (const key of this.saved.keys()) if (key.endsWith(` ${stream}`)) this.saved.delete(key);
  }
}
