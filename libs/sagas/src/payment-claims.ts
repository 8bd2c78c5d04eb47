import type { PaymentRegistry, Streams } from '#application';
import { type DomainEvent, getStreamId, type PaymentContested, toChallengePayment, toPaymentKey } from '#domain';
import {
  ActionRequiredError,
  type CheckpointStore,
  createCauseFromEvent,
  type EventBatch,
  type EventReader,
  type EventSink,
  type Lease,
  pump,
  type Runtime,
  type StoredEvent,
} from '#kernel';

/** Name of the checkpoint. */
export const PAYMENT_CLAIMS = 'payment-claims';

export interface PaymentClaimDependencies {
  readonly eventReader: Pick<EventReader, 'subscribe' | 'readLastPosition'>;
  readonly registry: PaymentRegistry;
  readonly challenges: Streams['challenges'];
  readonly checkpoints: CheckpointStore;
  readonly runtime: Runtime;
}

/**
 * Follows the log until the lease ends. Claims each payment that was recorded without a claim, by a version without
 * claims. Reports each contested payment to the operator.
 * @returns `task`, which ends with the lease; and `claimed`, which resolves when all payments up to the present end of
 *   the log are claimed, or the lease has ended
 */
export function followPaymentClaims(
  dependencies: PaymentClaimDependencies,
  { signal }: Lease,
): { readonly task: Promise<void>; readonly claimed: Promise<void> } {
  const { eventReader, runtime } = dependencies;
  const sink = new PaymentClaimSink(dependencies);
  const task = pump(eventReader.subscribe.bind(eventReader), sink, signal, runtime);
  return { task, claimed: Promise.race([sink.caughtUp, task]) };
}

class PaymentClaimSink implements EventSink {
  readonly name = PAYMENT_CLAIMS;
  readonly caughtUp: Promise<void>;
  private readonly dependencies: PaymentClaimDependencies;
  private readonly markCaughtUp: () => void;
  /** The last position when this process began to follow the log. */
  private target: bigint | undefined;

  constructor(dependencies: PaymentClaimDependencies) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.dependencies = dependencies;
    this.caughtUp = promise;
    this.markCaughtUp = resolve;
  }

  async loadCheckpoint(): Promise<bigint> {
    const { checkpoints, eventReader } = this.dependencies;
    this.target ??= await eventReader.readLastPosition();
    const position = await checkpoints.load(this.name);
    this.advance(position);
    return position;
  }

  async apply({ events, position }: EventBatch): Promise<void> {
    await Promise.all(events.map((event) => this.handleEvent(event as StoredEvent<DomainEvent>)));
    await this.dependencies.checkpoints.save(this.name, position);
    this.advance(position);
  }

  private advance(position: bigint): void {
    if (this.target !== undefined && position >= this.target) this.markCaughtUp();
  }

  private async handleEvent(event: StoredEvent<DomainEvent>): Promise<void> {
    const { registry, challenges } = this.dependencies;
    const cause = createCauseFromEvent(event, 'workflow:topups');
    if (event.type === 'PaymentReceived') await registry.claim(event.data.payment, event.stream, cause);
    if (event.type === 'ChallengePaid') {
      const { issued } = await challenges.read(getStreamId(event));
      if (issued) await registry.claim(toChallengePayment(issued), event.stream, cause);
    }
    if (event.type === 'PaymentContested') this.reportContest(event);
  }

  private reportContest({ data: { payment, claimant, owner } }: PaymentContested): void {
    const key = toPaymentKey(payment);
    this.dependencies.runtime.reportError(
      `payment ${key} of ${owner} was also reported for ${claimant}, which gets nothing for it`,
      new ActionRequiredError('a payment backend has reported one payment twice; see npm run ledger -- payments'),
    );
  }
}
