/** Stored events that the deciders of the domain decide, without an event store. */
import {
  type AccountCommand,
  type AutoTopupCommand,
  accountDecider,
  autoTopupDecider,
  type ChallengeCommand,
  challengeDecider,
  type DomainEvent,
  type OpenInvoiceCommand,
  openInvoicesDecider,
  type PaymentClaimCommand,
  paymentClaimDecider,
  type TopupCommand,
  type TopupState,
  topupDecider,
  topupWorkflow,
  type VideoCommand,
  videoDecider,
} from '#domain';
import { type Decider, fold, type Message, Rejection, type StoredEvent } from '#kernel';

const DECIDERS = {
  account: accountDecider,
  autotopup: autoTopupDecider,
  challenge: challengeDecider,
  invoices: openInvoicesDecider,
  payment: paymentClaimDecider,
  topup: topupDecider,
  video: videoDecider,
} as const;

/** A command, and the category of the stream that decides it. */
export type HistoryCommand =
  | ['account', AccountCommand]
  | ['autotopup', AutoTopupCommand]
  | ['challenge', ChallengeCommand]
  | ['invoices', OpenInvoiceCommand]
  | ['payment', PaymentClaimCommand]
  | ['topup', TopupCommand]
  | ['video', VideoCommand];

export class DecidedHistory {
  readonly events: StoredEvent<DomainEvent>[] = [];
  private readonly states = new Map<string, unknown>();
  private readonly revisions = new Map<string, number>();

  /** Decides a command. A rejected one has no events. */
  run(id: string, ...[category, command]: HistoryCommand): void {
    const stream = `${category}-${id}`;
    const decider = DECIDERS[category] as unknown as Decider<Message, unknown, DomainEvent>;
    const state = this.states.get(stream) ?? decider.getInitialState();
    try {
      const events = decider.decide(command, state);
      this.states.set(stream, fold(decider, state, events));
      for (const event of events) this.append(stream, event);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
    }
  }

  /** Appends an event without a decision. */
  append(stream: string, { type, data }: DomainEvent): void {
    const revision = this.revisions.get(stream) ?? 0;
    this.revisions.set(stream, revision + 1);
    const position = BigInt(this.events.length + 1);
    const json = JSON.parse(JSON.stringify({ type, data }));
    this.events.push({ ...json, id: `e${position}`, stream, revision, position, recordedAt: data.at, metadata: {} });
  }

  read<State>(stream: string): State {
    return this.states.get(stream) as State;
  }

  /** Sends the commands of the workflow of a top-up, such as the credit of its payments. */
  creditTopup(id: string, now: string): void {
    const topup = this.read<TopupState | undefined>(`topup-${id}`) ?? topupDecider.getInitialState();
    for (const step of topupWorkflow.plan(topup, now).steps) {
      if (step.step !== 'send') continue;
      if (step.command.target === 'account') this.run(step.command.id, 'account', step.command.command);
      else this.run(id, 'topup', step.command.command);
    }
  }
}
