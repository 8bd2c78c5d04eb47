import { CHALLENGE, type PaymentId, type RejectionCode } from '#domain';
import { money, Rejection, toStreamName, ZERO_USD } from '#kernel';
import type { Challenges } from '../streams.ts';
import { type Hold, HoldAlreadyExistsError, type HoldRequest } from './payer.ts';
import type { PaymentRegistry } from './payment-registry.ts';
import { type PayerDependencies, StreamPayer } from './stream-payer.ts';

/** A challenge whose proof of payment, with the preimage of the payment, was presented and verified. */
export interface PaidChallenge {
  readonly challengeId: string;
  readonly payment: PaymentId;
  /** Digest of the request that carried the proof. */
  readonly request: string;
  /** Version of the price list that was in force when the challenge was issued. */
  readonly priceList: string;
}

/** Pays for the one request that the challenge was issued for, at most with the amount that was paid. */
export class ChallengePayer extends StreamPayer {
  /**
   * @param isRetry the request was served before and its response was lost; the operator absorbs the cost of serving
   *   the request again
   */
  constructor(
    dependencies: PayerDependencies,
    private readonly streams: { readonly challenges: Challenges; readonly registry: PaymentRegistry },
    private readonly challenge: PaidChallenge,
    private readonly isRetry: boolean,
  ) {
    super(dependencies);
  }

  get id(): string {
    return toStreamName(CHALLENGE, this.challenge.challengeId);
  }

  get priceList(): string {
    return this.challenge.priceList;
  }

  protected get actor(): string {
    return `challenge:${this.challenge.challengeId}`;
  }

  /** Whether the challenge pays for the request is decided when it is claimed. */
  async assertAffordable(): Promise<void> {}

  /**
   * Claims the payment, then holds its money.
   * @throws Rejection if the payment belongs to a top-up or another challenge, or the challenge does not pay for this
   *   request, can no longer be used, or has an open hold; HoldAlreadyExistsError if that hold has the same id
   */
  async hold({ holdId, query, maxAmount, lifetimeMs }: HoldRequest): Promise<Hold> {
    const { challengeId, payment, request } = this.challenge;
    if (!(await this.streams.registry.claim(payment, this.id, this.createCause(holdId))))
      throw new Rejection<RejectionCode>('challenge_used', 'The payment has already been used elsewhere');
    const { clock, getProcessId } = this.dependencies;
    const expiresAt = clock.nowMs() + lifetimeMs;
    const data = {
      holdId,
      request,
      maxAmount,
      query,
      isRetry: this.isRetry,
      owner: getProcessId(),
      expiresAt: clock.toInstant(expiresAt),
      at: clock.now(),
    };
    const { events, revision } = await this.acquireHold({ holdId, expiresAt }, () =>
      this.streams.challenges.run(challengeId, { type: 'ClaimChallenge', data }, this.createCause(holdId)),
    );
    const held = events.find((event) => event.type === 'FundsHeld');
    if (!held) throw new HoldAlreadyExistsError(`Hold ${holdId} belongs to a running request`);
    this.heldAtRevision = revision;
    const amount = money.parseJsonAmount(held.data.amount);
    return { holdId, payer: this.id, amount, availableAfter: ZERO_USD, expiresAt };
  }

  /** A challenge has no money beyond what was paid for it. */
  async extend(): Promise<'exhausted'> {
    return 'exhausted';
  }
}
