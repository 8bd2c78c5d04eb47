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
  readonly facts: EventReader;
  readonly streams: Pick<Streams, 'accounts' | 'topups' | 'autoTopups'>;
  readonly invoices: AutoTopupInvoices;
  readonly backends: PaymentBackendRegistry;
  readonly wallets: Wallets;
  readonly secrets: Pick<Secrets, 'open'>;
  readonly limits: AutoTopupLimits;
  readonly due: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/** Has wallets pay for the accounts they are connected to, as long as this process has the turn. */
export function runAutoTopups(ports: AutoTopupWorkflowDependencies, lease: Lease): readonly Promise<void>[] {
  return startWorkflow(autoTopupWorkflow, new AutoTopupSteps(ports, lease).ports(), lease).tasks;
}

type Commands = readonly AutoTopupCommand[];

class AutoTopupSteps {
  constructor(
    private readonly given: AutoTopupWorkflowDependencies,
    private readonly lease: Lease,
  ) {}

  ports(): WorkflowDependencies<AutoTopupCommand, AutoTopupEvent, AutoTopupStep> {
    const { facts, streams, due, checkpoints, clock, runtime } = this.given;
    return {
      ...{ eventReader: facts, runner: streams.autoTopups, schedule: due, checkpoints, runtime },
      send: ({ command }, accountId, cause) => this.send(command, accountId, cause),
      query: (questions) => questions.map(({ id, query: question }) => this.ask(question, id)),
      perform: ({ effect }, accountId) => this.pay(effect, accountId),
      now: () => clock.now(),
    };
  }

  private async send(command: AutoTopupSendCommand, accountId: string, cause: Cause): Promise<void> {
    const { attempt } = command;
    if (command.type === 'drop') return this.end({ attempt, outcome: 'dropped' }, accountId, cause);
    const { topupId, amount } = command;
    try {
      const { destination, expiresAt } = await this.given.invoices.getOrCreate({ accountId, topupId, amount }, cause);
      const data = { attempt, invoice: destination.value, expiresAt, at: this.given.clock.now() };
      await this.given.streams.autoTopups.run(accountId, { type: 'RecordInvoice', data }, cause);
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
    const command = { type: 'EndAutoTopup', data: { ...data, at: this.given.clock.now() } } as const;
    await this.given.streams.autoTopups.run(accountId, command, cause);
  }

  private ask(question: AutoTopupQuery, accountId: string): Promise<Commands> {
    return question.type === 'balance' ? this.below(question, accountId) : this.fateOf(question);
  }

  private async below(
    { attempt, threshold }: Extract<AutoTopupQuery, { type: 'balance' }>,
    accountId: string,
  ): Promise<Commands> {
    const balance = balanceOf(await this.given.streams.accounts.read(accountId));
    if (balance >= threshold) return [];
    const { limits, clock } = this.given;
    const data = { attempt, topupId: generateTopupId(), balance, limits, at: clock.now() };
    return [{ type: 'BeginAutoTopup', data }];
  }

  /** Only what its back end says makes an invoice unpaid: what was recorded may be late. */
  private async fateOf({
    attempt,
    topupId,
    hasExpired: isOver,
  }: Extract<AutoTopupQuery, { type: 'invoice' }>): Promise<Commands> {
    const { streams, backends, clock } = this.given;
    const { invoice, payments } = await streams.topups.read(topupId);
    const came = [...payments.values()];
    const ended = (outcome: 'paid' | 'expired'): Commands => [
      { type: 'EndAutoTopup', data: { attempt, outcome, at: clock.now() } },
    ];
    if (came.length > 0) return came.every(({ isCredited: credited }) => credited) ? ended('paid') : [];
    if (!isOver || !invoice) return [];
    const backend = backends.find(invoice.backend);
    if (!backend) throw new Error(`${invoice.backend}, which knows what became of an invoice, is not configured here`);
    return (await backend.fetchPayments([invoice.reference])).length > 0 ? [] : ended('expired');
  }

  /** Right before money is asked for, it is looked whether it is still wanted. */
  private async pay(
    { attempt, request, topupId, invoice }: WalletPaymentEffect,
    accountId: string,
  ): Promise<WalletRequestOutcome> {
    const { streams, wallets } = this.given;
    const [state, topup, account] = await Promise.all([
      streams.autoTopups.read(accountId),
      streams.topups.read(topupId),
      streams.accounts.read(accountId),
    ]);
    const { wallet: connected, attempt: open } = state;
    if (!connected || connected.wallet.pubkey !== open?.payer) return unsent('another wallet is connected by now');
    if (topup.payments.size > 0) return unsent('the invoice is paid');
    if (balanceOf(account) >= money.parseJsonAmount(connected.threshold))
      return { ...unsent('enough was credited by now'), isUnneeded: true };
    const secret = this.opened(connected.secret, accountId);
    if (secret === undefined) return unsent('the secret of the wallet cannot be read here');
    const hear = (answer: WalletResponse) => void this.note({ attempt, request, ...answer }, accountId);
    try {
      await wallets.pay({ ...connected.wallet, secret }, invoice, hear);
      return { isSent: true };
    } catch (error) {
      if (error instanceof WalletUnreachableError) return unsent(error.message);
      throw error;
    }
  }

  /** @returns undefined where it was sealed with another master key */
  private opened(secret: SealedSecret, accountId: string): string | undefined {
    try {
      return this.given.secrets.open(secret);
    } catch (error) {
      this.given.runtime.reportError(`the wallet of ${accountId} cannot be asked`, error);
      return undefined;
    }
  }

  /**
   * An answer may come long after it was asked for, and its process may be about to end: then it is not needed. Nothing else
   * says it again, so it waits for a store that is away.
   */
  private async note(
    answer: WalletResponse & { readonly attempt: number; readonly request: number },
    accountId: string,
  ): Promise<void> {
    const { streams, clock, runtime } = this.given;
    const command = { type: 'RecordAnswer', data: { ...answer, at: clock.now() } } as const;
    const write = () => streams.autoTopups.run(accountId, command, createRootCause(ACTOR, accountId));
    const sleep = (wait: number) => runtime.sleep(wait, this.lease.signal);
    await retryWhileUnavailable(write, sleep, () => this.lease.isHeld()).catch((error: unknown) => {
      runtime.reportError(`what a wallet of ${accountId} answered could not be noted`, error);
    });
  }
}

function unsent(why: string): Extract<WalletRequestOutcome, { isSent: false }> {
  return { isSent: false, reason: why, isUnneeded: false };
}

/** A hold that passes pulls no money. */
function balanceOf({ available, held }: AccountState): PicoUsd {
  return money.add(available, held);
}
