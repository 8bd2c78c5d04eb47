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
  /** @param again the request was served, and its answer was lost with the gateway that died: the house pays */
  constructor(
    holding: PayerDependencies,
    private readonly challenges: Challenges,
    private readonly proven: PaidChallenge,
    private readonly again = false,
  ) {
    super(holding);
  }

  get id(): string {
    return toStreamName(CHALLENGE, this.proven.challengeId);
  }

  get priceList(): string {
    return this.proven.priceList;
  }

  protected get actor(): string {
    return `challenge:${this.proven.challengeId}`;
  }

  /** @throws Rejection when it does not pay for this request, or not any more, or pays for it at this moment */
  async take({ holdId, query, atMost, lifetimeMs }: HoldRequest): Promise<Hold> {
    const { challengeId, request } = this.proven;
    const { clock, owner } = this.holding;
    const expiresAt = clock.milliseconds() + lifetimeMs;
    const terms = { holdId, request, maxAmount: atMost, query, isRetry: this.again };
    const data = { ...terms, owner: owner(), expiresAt: clock.at(expiresAt), at: clock.now() };
    const { events } = await this.confirmed({ holdId, expiresAt }, () =>
      this.challenges.run(challengeId, { type: 'ClaimChallenge', data }, this.request(holdId)),
    );
    const held = events.find((event) => event.type === 'FundsHeld');
    if (!held) throw new HoldAlreadyExistsError(`Hold ${holdId} belongs to a running request`);
    const amount = money.parseJsonAmount(held.data.amount);
    return { holdId, payer: this.id, amount, beside: ZERO_USD, reach: amount, expiresAt };
  }

  /** There is nothing beside what was paid. */
  async grow(): Promise<'no more'> {
    return 'no more';
  }
}
