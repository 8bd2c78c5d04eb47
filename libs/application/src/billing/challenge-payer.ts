import { CHALLENGE } from '#domain';
import { money, toStreamName, ZERO_USD } from '#kernel';
import type { Challenges } from '../streams.ts';
import { type Hold, HoldAlreadyExistsError, type HoldRequest } from './payer.ts';
import { type PayerDependencies, StreamPayer } from './stream-payer.ts';

/** A challenge whose proof of payment, with the preimage of the payment, was presented and verified. */
export interface PaidChallenge {
  readonly challengeId: string;
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
    private readonly challenges: Challenges,
    private readonly challenge: PaidChallenge,
    private readonly isRetry = false,
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

  /**
   * @throws Rejection if the challenge does not pay for this request, can no longer be used, or has an open hold;
   *   HoldAlreadyExistsError if that hold has the same id
   */
  async hold({ holdId, query, maxAmount, lifetimeMs }: HoldRequest): Promise<Hold> {
    const { challengeId, request } = this.challenge;
    const { clock, getProcessId } = this.dependencies;
    const expiresAt = clock.nowMs() + lifetimeMs;
    const terms = { holdId, request, maxAmount, query, isRetry: this.isRetry };
    const data = { ...terms, owner: getProcessId(), expiresAt: clock.toInstant(expiresAt), at: clock.now() };
    const { events } = await this.acquireHold({ holdId, expiresAt }, () =>
      this.challenges.run(challengeId, { type: 'ClaimChallenge', data }, this.createCause(holdId)),
    );
    const held = events.find((event) => event.type === 'FundsHeld');
    if (!held) throw new HoldAlreadyExistsError(`Hold ${holdId} belongs to a running request`);
    const amount = money.parseJsonAmount(held.data.amount);
    return { holdId, payer: this.id, amount, availableAfter: ZERO_USD, maxSpendable: amount, expiresAt };
  }

  /** A challenge has no money beyond what was paid for it. */
  async extend(): Promise<'exhausted'> {
    return 'exhausted';
  }
}
