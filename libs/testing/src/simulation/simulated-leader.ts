import { createStreams, HoldCommandRouter, type Streams } from '#application';
import { competeForLease } from '#foundation';
import { type Lease, pump, type SnapshotStore } from '#kernel';
import { expireHolds } from '#sagas';
import { holds } from '../../../projections/src/holds.ts';
import { keys } from '../../../projections/src/keys.ts';
import type { MemoryLeases } from './memory-leases.ts';
import type { MemoryPresence } from './memory-presence.ts';
import { MemoryReadModel } from './memory-read-model.ts';
import type { Plan } from './plan.ts';
import { createRemote, type RemoteOptions } from './remote.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import { runPaymentWorkflows, type SharedStores, TopupIndex } from './simulated-workflows.ts';

export interface LeaderOptions {
  readonly process: SimulatedProcess;
  readonly shared: SharedStores;
  readonly snapshots: SnapshotStore;
  readonly leases: MemoryLeases;
  readonly database: RemoteOptions;
  readonly plan: Pick<Plan, 'eventsPerSnapshot'>;
  readonly presence: MemoryPresence;
}

/** One run of a process that competes for the leases of workflows and sweeps. */
export class SimulatedLeader {
  readonly process: SimulatedProcess;
  private readonly streams: Streams;
  readonly openHolds = new MemoryReadModel(holds);
  readonly shownKeys = new MemoryReadModel(keys);
  private readonly topups = new TopupIndex();
  private readonly tasks: readonly Promise<void>[];

  constructor(private readonly options: LeaderOptions) {
    const { process, shared, snapshots, plan } = options;
    const { runtime, stopSignal } = process;
    const { store, schedule, checkpoints } = shared;
    this.process = process;
    this.streams = createStreams(store, snapshots, runtime, plan);
    for (const sink of [this.openHolds, this.shownKeys, this.topups])
      void pump(store.subscribe.bind(store), sink, stopSignal, runtime);
    const remote = <T extends object>(name: string, target: T) => createRemote(name, target, process, options.database);
    const stores = {
      ...shared,
      schedule: remote('schedule', schedule),
      checkpoints: remote('checkpoints', checkpoints),
    };
    const payments = { findTopups: this.topups.find };
    this.tasks = [
      this.lead('hold-expiry', (lease) => [this.expireHolds(lease)]),
      this.lead('payments', (lease) => runPaymentWorkflows(process, this.streams, stores, { lease, ...payments })),
    ];
  }

  /** Releases the leases, and waits for the work that runs. */
  async stop(): Promise<void> {
    this.process.stop();
    await Promise.all(this.tasks);
  }

  private lead(name: string, work: (lease: Lease) => readonly Promise<void>[]): Promise<void> {
    const { process, leases, database } = this.options;
    const { runtime, stopSignal: signal } = process;
    const openTable = (onLost: (error: unknown) => void) => {
      const table = leases.open(process, onLost);
      const { acquire, renew, release } = createRemote(`leases ${name}`, table, process, database);
      return { acquire, renew, release, close: table.close };
    };
    return competeForLease({ name, signal, reportError: runtime.reportError }, runtime, openTable, work);
  }

  private expireHolds({ signal }: Lease): Promise<void> {
    const { process, presence, database } = this.options;
    const rows = () => [...this.openHolds.rows.values()];
    return expireHolds(
      {
        payers: new HoldCommandRouter(this.streams),
        clock: process.clock,
        runtime: process.runtime,
        findOverduePayers: async (at) => [
          ...new Set(rows().flatMap(({ payer, expires_at }) => (expires_at <= at ? [payer] : []))),
        ],
        findStaleProcesses: createRemote('presence', presence, process, database).findStaleProcesses,
        findPayersByOwner: async (owners) =>
          rows().flatMap(({ payer, owner }) => (owner !== null && owners.includes(owner) ? [{ payer, owner }] : [])),
      },
      signal,
    );
  }
}
