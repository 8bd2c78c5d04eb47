import {
  type AutoTopupInvoices,
  type AutoTopupLimits,
  type Clock,
  generateTopupId,
  InvoiceRejectedError,
  type PaymentBackendRegistry,
  type Secrets,
  type Streams,
  type WalletResponse,
  type Wallets,
  WalletUnreachableError,
} from '#application';
import {
  type AccountState,
  type AutoTopupCommand,
  type AutoTopupEvent,
  type AutoTopupQuery,
  type AutoTopupSendCommand,
  type AutoTopupStep,
  autoTopupWorkflow,
  type SealedSecret,
  type WalletPaymentEffect,
  type WalletRequestOutcome,
} from '#domain';
import {
  type Cause,
  type CheckpointStore,
  createRootCause,
  type EventReader,
  type Lease,
  money,
  type PicoUsd,
  type Runtime,
  retryWhileUnavailable,
  startWorkflow,
  type WorkflowDependencies,
  type WorkflowSchedule,
} from '#kernel';

const ACTOR = `workflow:${autoTopupWorkflow.name}`;

export interface AutoTopupWorkflowDependencies {
  readonly eventReader: EventReader;
  readonly streams: Pick<Streams, 'accounts' | 'topups' | 'autoTopups'>;
  readonly invoices: AutoTopupInvoices;
  readonly backends: PaymentBackendRegistry;
  readonly wallets: Wallets;
  readonly secrets: Pick<Secrets, 'open'>;
  readonly limits: AutoTopupLimits;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/** Runs the automatic top-ups of all accounts until the lease ends: connected wallets are requested to pay invoices. */
export function runAutoTopupWorkflow(
  dependencies: AutoTopupWorkflowDependencies,
  lease: Lease,
): readonly Promise<void>[] {
  return startWorkflow(autoTopupWorkflow, new AutoTopupSteps(dependencies, lease).createWorkflowDependencies(), lease)
    .tasks;
}

type Commands = readonly AutoTopupCommand[];

class AutoTopupSteps {
  constructor(
    private readonly dependencies: AutoTopupWorkflowDependencies,
    private readonly lease: Lease,
  ) {}

  createWorkflowDependencies(): WorkflowDependencies<AutoTopupCommand, AutoTopupEvent, AutoTopupStep> {
    const { eventReader, streams, schedule, checkpoints, clock, runtime } = this.dependencies;
    return {
      eventReader,
      runner: streams.autoTopups,
      schedule,
      checkpoints,
      runtime,
      send: ({ command }, accountId, cause) => this.send(command, accountId, cause),
      query: (queries) => queries.map(({ id, query }) => this.runQuery(query, id)),
      perform: ({ effect }, accountId) => this.pay(effect, accountId),
      now: () => clock.now(),
    };
  }

  private async send(command: AutoTopupSendCommand, accountId: string, cause: Cause): Promise<void> {
    const { attempt } = command;
    if (command.type === 'drop') return this.end({ attempt, outcome: 'dropped' }, accountId, cause);
    const { topupId, amount } = command;
    try {
      const { destination, expiresAt } = await this.dependencies.invoices.getOrCreate(
        { accountId, topupId, amount },
        cause,
      );
      const data = { attempt, invoice: destination.value, expiresAt, at: this.dependencies.clock.now() };
      await this.dependencies.streams.autoTopups.run(accountId, { type: 'RecordInvoice', data }, cause);
    } catch (error) {
      if (!(error instanceof InvoiceRejectedError)) throw error;
      await this.end({ attempt, outcome: 'failed', why: error.message }, accountId, cause);
    }
  }

  private async end(
    data: Omit<Extract<AutoTopupCommand, { type: 'EndAutoTopup' }>['data'], 'at'>,
    accountId: string,
    cause: Cause,
  ): Promise<void> {
    const command = { type: 'EndAutoTopup', data: { ...data, at: this.dependencies.clock.now() } } as const;
    await this.dependencies.streams.autoTopups.run(accountId, command, cause);
  }

  private runQuery(query: AutoTopupQuery, accountId: string): Promise<Commands> {
    return query.type === 'balance' ? this.checkBalance(query, accountId) : this.checkInvoice(query);
  }

  private async checkBalance(
    { attempt, threshold }: Extract<AutoTopupQuery, { type: 'balance' }>,
    accountId: string,
  ): Promise<Commands> {
    const balance = calculateBalance(await this.dependencies.streams.accounts.read(accountId));
    if (balance >= threshold) return [];
    const { limits, clock, runtime } = this.dependencies;
    const data = { attempt, topupId: generateTopupId(runtime), balance, limits, at: clock.now() };
    return [{ type: 'BeginAutoTopup', data }];
  }

  /** Polls the payment backend before an attempt ends as unpaid, because recorded payments may lag. */
  private async checkInvoice({
    attempt,
    topupId,
    hasExpired,
  }: Extract<AutoTopupQuery, { type: 'invoice' }>): Promise<Commands> {
    const { streams, backends, clock } = this.dependencies;
    const { invoice, payments } = await streams.topups.read(topupId);
    const received = [...payments.values()];
    const createEndCommands = (outcome: 'paid' | 'expired'): Commands => [
      { type: 'EndAutoTopup', data: { attempt, outcome, at: clock.now() } },
    ];
    if (received.length > 0) return received.every(({ isCredited }) => isCredited) ? createEndCommands('paid') : [];
    if (!hasExpired || !invoice) return [];
    const backend = backends.find(invoice.backend);
    if (!backend) throw new Error(`payment backend ${invoice.backend} of an open invoice is not configured here`);
    return (await backend.fetchPayments([invoice.reference])).length > 0 ? [] : createEndCommands('expired');
  }

  /** Sends the payment request, unless the payment is no longer needed, or the wallet cannot be used. */
  private async pay(
    { attempt, request, topupId, invoice }: WalletPaymentEffect,
    accountId: string,
  ): Promise<WalletRequestOutcome> {
    const { streams, wallets } = this.dependencies;
    const [state, topup, account] = await Promise.all([
      streams.autoTopups.read(accountId),
      streams.topups.read(topupId),
      streams.accounts.read(accountId),
    ]);
    const { wallet: connected, attempt: openAttempt } = state;
    if (!connected || connected.wallet.pubkey !== openAttempt?.payer)
      return createUnsentOutcome('the wallet of this attempt is no longer connected');
    if (topup.payments.size > 0) return createUnsentOutcome('the invoice is already paid');
    if (calculateBalance(account) >= money.parseJsonAmount(connected.threshold))
      return { ...createUnsentOutcome('the balance has reached the threshold'), isUnneeded: true };
    const secret = this.openSecret(connected.secret, accountId);
    if (secret === undefined) return createUnsentOutcome('the secret of the wallet cannot be opened');
    const onResponse = (response: WalletResponse) =>
      void this.recordResponse({ attempt, request, ...response }, accountId);
    try {
      await wallets.pay({ ...connected.wallet, secret }, invoice, onResponse);
      return { isSent: true };
    } catch (error) {
      if (error instanceof WalletUnreachableError) return createUnsentOutcome(error.message);
      throw error;
    }
  }

  /** @returns undefined if the secret cannot be opened, for example because its master key is not configured */
  private openSecret(secret: SealedSecret, accountId: string): string | undefined {
    try {
      return this.dependencies.secrets.open(secret);
    } catch (error) {
      this.dependencies.runtime.reportError(`the secret of the wallet of ${accountId} cannot be opened`, error);
      return undefined;
    }
  }

  /**
   * Records the response of a wallet, which may arrive long after the request. The wallet does not repeat it, so the
   * append is retried while the event store is unavailable. The response is dropped when the lease ends: the payment
   * backend knows whether the invoice was paid.
   */
  private async recordResponse(
    response: WalletResponse & { readonly attempt: number; readonly request: number },
    accountId: string,
  ): Promise<void> {
    const { streams, clock, runtime } = this.dependencies;
    const command = { type: 'RecordAnswer', data: { ...response, at: clock.now() } } as const;
    const write = () => streams.autoTopups.run(accountId, command, createRootCause(ACTOR, accountId));
    await retryWhileUnavailable(write, {
      runtime,
      problem: 'the response of a wallet could not be recorded; retrying',
      signal: this.lease.signal,
      shouldRetry: () => this.lease.isHeld(),
    }).catch((error: unknown) => {
      runtime.reportError(`the response of the wallet of ${accountId} could not be recorded`, error);
    });
  }
}

function createUnsentOutcome(reason: string): Extract<WalletRequestOutcome, { isSent: false }> {
  return { isSent: false, reason, isUnneeded: false };
}

/** Includes held amounts, so that a running request does not trigger a top-up. */
function calculateBalance({ available, held }: AccountState): PicoUsd {
  return money.add(available, held);
}
