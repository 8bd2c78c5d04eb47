import { CHALLENGE } from '#domain';
import { money, toStreamName, ZERO_USD } from '#kernel';
import type { Challenges } from '../streams.ts';
import { type Hold, HoldAlreadyExistsError, type HoldRequest } from './payer.ts';
import { type PayerDependencies, StreamPayer } from './stream-payer.ts';

/** A challenge whose proof was shown and is right: its preimage is that of its payment. */
export interface PaidChallenge {
  readonly challengeId: string;
  /** Digest of the request that the proof came with. */
  readonly request: string;
  /** The price list that was in force when it was issued. */
  readonly priceList: string;
}

/** A challenge pays for the one request that it was issued for, with what was paid and nothing more. */
export class ChallengePayer extends StreamPayer {
  /** @param isRetry the request was served, and its answer was lost with the gateway that died: the house pays */
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

  /** @throws Rejection when it does not pay for this request, or not any more, or pays for it at this moment */
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

  /** There is nothing beside what was paid. */
  async extend(): Promise<'exhausted'> {
    return 'exhausted';
  }
}
