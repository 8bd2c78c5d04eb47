/** The workflows of payments, as a leader runs them while it holds its lease. */
import {
  AutoTopupInvoices,
  AutoTopupLimits,
  CreateTopupHandler,
  PaymentBackendRegistry,
  PaymentMethods,
  PaymentRegistry,
  Secrets,
  type Streams,
  TopupPayments,
} from '#application';
import { readPayments } from '#catalogue';
import {
  type CheckpointStore,
  type EventStore,
  type Lease,
  money,
  START_POSITION,
  type StoredEvent,
  type WorkflowSchedule,
} from '#kernel';
import { runAutoTopupWorkflow, runChallengeWorkflow, runTopupWorkflow } from '#sagas';
import { BACKENDS, FixedRates, type PaymentNetwork, SimulatedBackend } from './simulated-payments.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import { SimulatedWallets, type WalletFaults } from './simulated-wallets.ts';

/** More than a simulation needs. */
const POLLS_PER_SECOND = 50;
export const MASTER_KEY = Buffer.alloc(32, 1);
/** Per account and day. */
export const AUTO_TOPUP_LIMITS = new AutoTopupLimits(4, money.parseUsd('10'));
/** Unexpired invoices of one account. */
export const MAX_OPEN_INVOICES = 3;

/** What all processes share, as this process reaches it. */
export interface SharedStores {
  readonly store: EventStore;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly network: PaymentNetwork;
  getWalletFaults(): WalletFaults;
}

/** What a process uses to receive payments. */
export function openPayments(process: SimulatedProcess, network: PaymentNetwork) {
  const backends = new PaymentBackendRegistry(
    Object.values(BACKENDS).map((name) => new SimulatedBackend(name, network, process)),
  );
  const paymentMethods = new PaymentMethods(readPayments(), backends, MAX_OPEN_INVOICES);
  const rates = new FixedRates(() => process.clock.now());
  return { backends, paymentMethods, rates };
}

/** Ids of top-ups by reference, as a read model that may lag shows them. */
export type FindTopups = (references: readonly string[]) => ReadonlyMap<string, string>;

/** Runs the workflows of top-ups, automatic top-ups and challenges until the lease ends. */
export function runPaymentWorkflows(
  process: SimulatedProcess,
  streams: Streams,
  { store, schedule, checkpoints, network, getWalletFaults }: SharedStores,
  { lease, findTopups }: { readonly lease: Lease; readonly findTopups: FindTopups },
): readonly Promise<void>[] {
  const { clock, runtime } = process;
  const { backends, paymentMethods, rates } = openPayments(process, network);
  const registry = new PaymentRegistry(streams.paymentClaims, clock);
  const shared = {
    eventReader: store,
    registry,
    challenges: streams.challenges,
    backends,
    pollsPerSecond: POLLS_PER_SECOND,
    schedule,
    checkpoints,
    clock,
    runtime,
  };
  const topups = {
    ...shared,
    accounts: streams.accounts,
    topups: streams.topups,
    payments: new TopupPayments(rates, paymentMethods, registry, clock),
    findTopups: async (_: string, references: readonly string[]) => ({
      ids: findTopups(references),
      isComplete: false,
    }),
  };
  const createTopup = new CreateTopupHandler({ streams, paymentMethods, rates, clock, runtime });
  const autoTopups = {
    ...shared,
    streams,
    invoices: new AutoTopupInvoices(streams.topups, createTopup),
    wallets: new SimulatedWallets(network, process, getWalletFaults),
    secrets: new Secrets(runtime, MASTER_KEY),
    limits: AUTO_TOPUP_LIMITS,
  };
  return [
    ...runTopupWorkflow(topups, lease),
    ...runAutoTopupWorkflow(autoTopups, lease),
    ...runChallengeWorkflow(shared, lease),
  ];
}

/** The references of top-ups, folded from events. */
export class TopupIndex {
  private readonly ids = new Map<string, string>();
  private position = START_POSITION;
  readonly name = 'references of top-ups';

  async loadCheckpoint(): Promise<bigint> {
    return this.position;
  }

  async apply({ events, position }: { readonly events: readonly StoredEvent[]; readonly position: bigint }) {
    for (const { type, stream, data } of events)
      if (type === 'InvoiceIssued')
        this.ids.set((data as { readonly reference: string }).reference, stream.slice('topup-'.length));
    this.position = position;
  }

  readonly find: FindTopups = (references) =>
    new Map(
      references.flatMap((reference) => {
        const id = this.ids.get(reference);
        return id === undefined ? [] : [[reference, id] as const];
      }),
    );
}
